"""delta of long compositions without any lattice: a Laplace inversion along a vertical line through the saddle point.

With ``M(z) = E_P[e^{z loss}]`` of the composed finite loss and any c > 0, ``delta(epsilon)`` is ``1 / (2 pi i)`` times
the integral of ``M(z) e^{-z epsilon} / (z (z + 1))`` over Re z = c, because ``(1 - e^{epsilon - l})_+`` in epsilon has
the transform ``e^{z l} / (z (z + 1))``. Through the saddle point the integrand is a bell, on which the
trapezoidal rule converges geometrically, so the relative accuracy does not depend on how small delta is. Needs a loss
with a density, or atoms that fade in the composition; two step sizes must agree.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from scipy import optimize, special

Complex = npt.NDArray[np.complex128]
Transform = Callable[[Complex], Complex]  # z -> ln M(z), up to multiples of 2 pi i


def inverted_delta(log_moment: Transform, epsilon: float, *, accuracy: float = 1e-9) -> float:
    """delta(epsilon) of the finite part of a loss with the given log-moment function.

    Raises:
        ArithmeticError: two step sizes differ by more than `accuracy`, relatively.
    """

    def exponent(z: Complex) -> Complex:
        return log_moment(z) - z * epsilon - np.log(z) - np.log1p(z)

    def real(c: float) -> float:
        return float(exponent(np.array([complex(c)]))[0].real)

    found = optimize.minimize_scalar(lambda u: real(float(np.exp(u))), bounds=(-12, 12), method="bounded")
    saddle = float(np.exp(found.x))
    near = 1e-3 * saddle
    curvature = (real(saddle + near) - 2 * real(saddle) + real(saddle - near)) / near**2
    width = 1 / np.sqrt(curvature)
    values = []
    for step in (width / 6, width / 9):
        total, start, block = 0.0, 0, 256
        while True:
            t = step * np.arange(start, start + block, dtype=np.float64)
            terms = np.exp(exponent(saddle + 1j * t) - real(saddle)).real
            if start == 0:
                terms[0] /= 2
            total += float(terms.sum())
            start += block
            if float(np.abs(terms[-64:]).max()) < 1e-15 * abs(total) or start > 1 << 21:
                break
        values.append(np.exp(real(saddle)) * total * step / np.pi)
    if not abs(values[0] - values[1]) <= accuracy * abs(values[1]):
        raise ArithmeticError(f"contour integrals at two steps differ: {values!r}")
    return float(values[1])


def gaussian(mu: float) -> Transform:
    return lambda z: mu**2 * z * (z + 1) / 2


def laplace(shift: float) -> Transform:
    """Atoms at +-shift and the loss density e^{(l - shift) / 2} / 4 between."""

    def transform(z: Complex) -> Complex:
        body = -np.expm1(-(2 * z + 1) * shift) / (4 * z + 2)
        return np.asarray(z * shift + np.log(0.5 + 0.5 * np.exp(-shift - 2 * z * shift) + body))

    return transform


def bounded_range(eta: float) -> Transform:
    """Loss density e^{(l - eta) / 2} / (2 (1 - e^-eta)) on [-eta, eta], from the second derivative of the profile."""

    def transform(z: Complex) -> Complex:
        body = -np.expm1(-(2 * z + 1) * eta) / ((2 * z + 1) * -np.expm1(-eta))
        return np.asarray(z * eta + np.log(body))

    return transform


def poisson_gaussian(mu: float, rate: float, *, removal: bool) -> Transform:
    """Trapezoidal rule over x, which converges geometrically for an analytic integrand on the line."""
    # The branch points of the mixture's logarithm lie pi / mu off the line; the step keeps the error near e^-40.
    step = min(0.1, 0.45 / mu)
    x = np.arange(-40.0, 40.0 + mu, step)
    log_base = -(x**2) / 2 - 0.5 * np.log(2 * np.pi) + np.log(step)
    ratio = np.logaddexp(np.log1p(-rate), np.log(rate) + mu * x - mu**2 / 2)  # ln of mixture over base

    def transform(z: Complex) -> Complex:
        power = (z + 1) if removal else -z
        return np.concatenate([_log_sum(log_base + part[:, None] * ratio) for part in _blocks(power)])

    return transform


def fixed_size_gaussian(mu: float, rate: float) -> Transform:
    """One record of value +1 or -1, sampled with probability `rate` among zeros; noise of multiplier 1 / mu."""
    step = min(0.1, 0.45 / mu)
    x = np.arange(-40.0, 40.0 + mu, step)
    log_base = -(x**2) / 2 - 0.5 * np.log(2 * np.pi) + np.log(step)
    up, down = (np.logaddexp(np.log1p(-rate), np.log(rate) + side * mu * x - mu**2 / 2) for side in (1, -1))

    def transform(z: Complex) -> Complex:
        return np.concatenate([_log_sum(log_base + up + part[:, None] * (up - down)) for part in _blocks(z)])

    return transform


def repeated(transform: Transform, count: int) -> Transform:
    return lambda z: count * transform(z)


def together(*transforms: Transform) -> Transform:
    return lambda z: sum((transform(z) for transform in transforms), start=np.zeros(len(z), dtype=np.complex128))


def _blocks(z: Complex) -> list[Complex]:
    return [z[i : i + 256] for i in range(0, len(z), 256)]


def _log_sum(exponents: Complex) -> Complex:
    return np.asarray(special.logsumexp(exponents, axis=1))
