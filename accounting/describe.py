"""Events in words, for tables: short, with units, never a Python repr."""

from __future__ import annotations

from dp_accounting import DpEvent, dp_event

from accounting import events as ours


def describe(event: DpEvent) -> str:
    """`event` as one short phrase."""
    match event:
        case ours.ApproximateDpEvent(epsilon=epsilon, delta=0.0):
            return f"{epsilon:.6g}-DP"
        case ours.ApproximateDpEvent(epsilon=epsilon, delta=delta):
            return f"({epsilon:.6g}, {delta:.3g})-DP"
        case ours.BoundedRangeDpEvent(eta=eta):
            return f"{eta:.6g}-bounded-range"
        case ours.DominatingPairDpEvent(upper=upper):
            return f"dominating pair on {len(upper)} outcomes"
        case ours.DiscreteGaussianDpEvent(sigma=sigma, sensitivity=sensitivity):
            return f"discrete Gaussian, sigma {sigma:.6g}, sensitivity {sensitivity}"
        case ours.PermuteAndFlipDpEvent(epsilon=epsilon):
            return f"permute-and-flip, {epsilon:.6g}-DP"
        case ours.RdpDpEvent(orders=orders):
            return f"Renyi curve at {len(orders)} orders"
        case ours.GroupDpEvent(event=inner, size=size):
            return f"group of {size}: {describe(inner)}"
        case dp_event.ComposedDpEvent(events=inner):
            return " + ".join(_bracketed(part) for part in inner) if inner else "nothing"
        case dp_event.SelfComposedDpEvent(event=inner, count=count):
            return f"{count} x {_bracketed(inner)}"
        case dp_event.SampledWithoutReplacementDpEvent(source_dataset_size=source, sample_size=sample, event=inner):
            return f"{sample} of {source} sampled without replacement: {describe(inner)}"
        case dp_event.PoissonSampledDpEvent(sampling_probability=rate, event=inner):
            return f"Poisson-sampled at {rate:.4g}: {describe(inner)}"
        case dp_event.GaussianDpEvent(noise_multiplier=sigma):
            return f"Gaussian, noise multiplier {sigma:.6g}"
        case dp_event.LaplaceDpEvent(noise_multiplier=scale):
            return f"Laplace, noise multiplier {scale:.6g}"
        case dp_event.DiscreteLaplaceDpEvent(noise_parameter=rate, sensitivity=sensitivity):
            return f"discrete Laplace, rate {rate:.6g}, sensitivity {sensitivity}"
        case dp_event.RandomizedResponseDpEvent(noise_parameter=noise, num_buckets=buckets):
            return f"randomized response, noise {noise:.6g}, {buckets} buckets"
        case dp_event.ZCDpEvent(rho=rho, xi=xi):
            return f"{rho:.6g}-zCDP" if xi == 0 else f"({xi:.6g}, {rho:.6g})-zCDP"
        case dp_event.NoOpDpEvent():
            return "no access to the data"
        case dp_event.NonPrivateDpEvent():
            return "not private"
        case _:
            return str(event)


def _bracketed(event: DpEvent) -> str:
    compound = isinstance(event, dp_event.ComposedDpEvent | dp_event.SelfComposedDpEvent)
    return f"({describe(event)})" if compound else describe(event)
