"""How each kind of claim is checked against exact pairs: one class per kind, folding pairs into running extremes.

Tolerance. A claimed number is a float that stands for the real it was rounded from (``math.log(3)`` for ln 3), so a
claim is compared at epsilon and delta enlarged by `ULPS` units in the last place; zero stays zero. Rational laws get
no other tolerance: the comparison is exact, and one of "holds" and "violated" is always the answer. Float laws are
compared at `FLOAT_SLACK`: a claim holds when the curve is below it at (epsilon + slack, delta (1 + slack)), is
violated when the curve is above it at (epsilon + slack, delta + slack), and is undecided between the two, where the
excess is no larger than what rounding of the law can make (a support that differs by a mass of 1e-12, say).
"""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from accounting import exp_bounds, round_up
from audits.exact_pairs import Bounds, Event, FinitePair, log_factor
from audits.rendering import readable
from audits.verdicts import Witness

ULPS = 8
FLOAT_SLACK = Fraction(1, 10**9)

Where = tuple[Any, Any]
"""The two datasets of a pair, in the direction in which it was looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What a check found over the pairs it saw; the fields mean what they mean in `Verdict`.

    violated: some pair exceeds the claim. undecided: why no answer can be given although all pairs were seen.
    """

    violated: bool
    undecided: str | None
    claim_epsilon: float
    claim_delta: float
    epsilon_lower: float | None
    epsilon_upper: float | None
    delta_found: float | None
    worst: Witness | None
    found: tuple[tuple[str, tuple[float, float]], ...] = ()
    notes: tuple[str, ...] = ()


class ClaimCheck(ABC):
    """Running extremes over the pairs of an audit. What was seen so far always stands: `findings` may be asked at any
    time.
    """

    @abstractmethod
    def observe(self, pair: FinitePair, where: Where) -> None:
        """Take in both directions of one pair of laws."""

    @abstractmethod
    def findings(self) -> Findings:
        """What the pairs seen so far show."""


def widened(value: float) -> Fraction:
    """The largest real that a claimed float is taken to stand for."""
    return Fraction(value) + ULPS * Fraction(math.ulp(value)) if value else Fraction(0)


class ApproximateCheck(ClaimCheck):
    """(epsilon, delta)-DP: ``H_{e^epsilon}(P||Q) <= delta`` in both directions of every pair."""

    def __init__(self, epsilon: float, delta: float) -> None:
        self._epsilon, self._delta = epsilon, delta
        self._wide_epsilon, self._wide_delta = widened(epsilon), widened(delta)
        self._violated = False
        self._excess = Fraction(0)
        self._delta_found = Fraction(0)
        self._least = Extreme()
        self._most: Extreme | None = None

    def observe(self, pair: FinitePair, where: Where) -> None:
        for direction, place in ((pair, where), (pair.reversed, where[::-1])):
            divergence = direction.divergence_at_most(self._epsilon)
            self._compare(direction, divergence)
            self._delta_found = max(self._delta_found, divergence)
            delta = Fraction(self._delta)
            if direction.exact and self._most is None:
                self._least.offer(direction, place, delta, divergence)
                continue
            if self._most is None:
                self._most = copy.copy(self._least)
            self._least.offer(direction, place, delta if direction.exact else delta + FLOAT_SLACK, divergence)
            self._most.offer(direction, place, delta, divergence)

    def _compare(self, direction: FinitePair, divergence: Fraction) -> None:
        """Settle whether this direction violates the claim; `divergence` is an upper bound of its H at the claimed
        epsilon.
        """
        if direction.exact:
            if divergence > self._wide_delta and not self._violated:
                self._violated = direction.exceeds(self._wide_epsilon, self._wide_delta)
            return
        epsilon = self._wide_epsilon + FLOAT_SLACK
        delta = Fraction(self._delta)
        if divergence <= delta or not direction.exceeds(epsilon, delta * (1 + FLOAT_SLACK)):
            return
        self._violated = self._violated or direction.exceeds(epsilon, delta + FLOAT_SLACK)
        self._excess = max(self._excess, divergence - delta)

    def findings(self) -> Findings:
        extreme = self._least if self._violated or self._most is None else self._most
        lower = self._least.bounds().lower
        upper = (self._most or self._least).bounds().upper
        notes = []
        if not self._violated and self._excess == 0 and (upper > self._epsilon or self._delta_found > self._delta):
            notes.append(
                f"a claimed number stands for the reals that round to it: compared {ULPS} units in its last place wider"
                + ("" if self._most is None else f", and {float(FLOAT_SLACK):g} wider because the laws are floats")
            )
        return Findings(
            violated=self._violated,
            undecided=too_fine(self._excess) if self._excess else None,
            claim_epsilon=self._epsilon,
            claim_delta=self._delta,
            epsilon_lower=lower,
            epsilon_upper=upper,
            delta_found=round_up(self._delta_found) + 0.0,
            worst=extreme.witness(),
            notes=tuple(notes),
        )


class BoundedRangeCheck(ClaimCheck):
    """eta-bounded-range: ``max_o P(o)/Q(o) <= e^eta min_o P(o)/Q(o)``, which implies eta-DP, reported beside it.

    Single outcomes decide: the ratio P(E)/Q(E) of an event lies between those of its outcomes. A range is the same in
    both directions. For float laws the ratios that violate are taken with every probability moved by `FLOAT_SLACK` in
    the claim's favour.
    """

    def __init__(self, eta: float) -> None:
        self._eta = eta
        self._wide_eta = widened(eta)
        self._pure = ApproximateCheck(eta, 0.0)
        self._violated = False
        self._undecided = False
        self._widest = _Widest()
        self._surest = _Widest()

    def observe(self, pair: FinitePair, where: Where) -> None:
        self._pure.observe(pair, where)
        high, low = pair.likelihood_range()
        width = _ratio_of_ratios(high, low, Fraction(0))
        sure = width if pair.exact else _ratio_of_ratios(high, low, FLOAT_SLACK)
        for widest, found in ((self._widest, width), (self._surest, sure)):
            if widest.worst is None or _larger(found, widest.width):
                widest.width, widest.worst = found, _range_witness(high, low, where, width)
        limit = self._wide_eta if pair.exact else self._wide_eta + FLOAT_SLACK
        if above_exp(width, limit):
            violated = pair.exact or above_exp(sure, limit)
            self._violated = self._violated or violated
            self._undecided = self._undecided or not violated

    def findings(self) -> Findings:
        pure = self._pure.findings()
        bounds = (log_factor(self._surest.width).lower, log_factor(self._widest.width).upper)
        return Findings(
            violated=self._violated,
            undecided=too_fine(FLOAT_SLACK) if self._undecided else None,
            claim_epsilon=self._eta,
            claim_delta=0.0,
            epsilon_lower=pure.epsilon_lower,
            epsilon_upper=pure.epsilon_upper,
            delta_found=pure.delta_found,
            worst=(self._surest if self._violated else self._widest).worst,
            found=(("range", bounds),),
            notes=(
                "the claim is about the range of the log-ratio of the two laws (found: range); "
                "epsilon is the largest log-ratio alone, at delta 0",
            ),
        )


@dataclass(slots=True)
class _Widest:
    """The largest ratio of likelihood ratios so far, None for infinity, and the pair that has it."""

    width: Fraction | None = Fraction(1)
    worst: Witness | None = None


class Extreme:
    """The largest "smallest factor" over the directions offered, and the direction that needs it.

    A direction is sorted only when it beats the record: ``H_c > delta`` at the record c says so in one pass.
    """

    def __init__(self) -> None:
        self._factor: Fraction | None = Fraction(1)
        self._rank = Fraction(-1)
        self._holder: tuple[FinitePair, Where, Fraction] | None = None

    def offer(self, direction: FinitePair, where: Where, delta: Fraction, divergence: Fraction) -> None:
        """divergence: at the claimed epsilon; it ranks directions that need the same factor."""
        at_record = direction.only_here if self._factor is None else direction.divergence(self._factor)
        if self._holder is not None and (at_record < delta or (at_record == delta and self._factor is None)):
            return
        if at_record > delta and self._factor is not None:
            self._factor = direction.least_factor(delta)
        elif self._holder is not None and divergence <= self._rank:
            return
        self._rank = divergence
        self._holder = (direction, where, delta)

    def bounds(self) -> Bounds:
        return log_factor(self._factor)

    def witness(self) -> Witness | None:
        """The holder's datasets and an event that needs this factor."""
        if self._holder is None:
            return None
        direction, where, delta = self._holder
        return event_witness(direction.event_at(delta), where)


def event_witness(event: Event, where: Where) -> Witness:
    """An event of a finite space as a witness."""
    return Witness(
        dataset=where[0],
        neighbour=where[1],
        event=describe_event(event),
        probability=min(float(event.probability), 1.0),
        neighbour_probability=min(float(event.neighbour_probability), 1.0),
        outcomes=event.outcomes,
    )


def describe_event(event: Event, *, limit: int = 160) -> str:
    """The event by its outcomes, or by the outcomes it leaves out where they are fewer."""
    if len(event.outcomes) == 1:
        return f"outcome = {readable(event.outcomes[0], limit=limit)}"
    if 0 < len(event.others) < len(event.outcomes):
        if len(event.others) == 1:
            return f"outcome != {readable(event.others[0], limit=limit)}"
        return f"outcome not in {{{_listed(event.others, limit)}}}"
    if not event.others and event.outcomes:
        return "any outcome"
    return f"outcome in {{{_listed(event.outcomes, limit)}}}" if event.outcomes else "no outcome"


def _listed(outcomes: tuple[Any, ...], limit: int) -> str:
    parts: list[str] = []
    room = limit
    for outcome in outcomes:
        text = readable(outcome, limit=limit)
        room -= len(text) + 2
        if room < 0 and parts:
            return ", ".join(parts) + f", ... ({len(outcomes)} outcomes)"
        parts.append(text)
    return ", ".join(parts)


def _range_witness(high: Event, low: Event, where: Where, width: Fraction | None) -> Witness:
    top, bottom = (readable(event.outcomes[0], limit=80) for event in (high, low))
    gap = f"{log_factor(width).upper:.6g}" if width is not None else "infinitely"
    return Witness(
        dataset=where[0],
        neighbour=where[1],
        event=f"outcome = {top}, whose log-ratio is {gap} above that of outcome = {bottom}",
        probability=min(float(high.probability), 1.0),
        neighbour_probability=min(float(high.neighbour_probability), 1.0),
        outcomes=high.outcomes,
    )


def _ratio_of_ratios(high: Event, low: Event, slack: Fraction) -> Fraction | None:
    """(P/Q on `high`) / (P/Q on `low`) with every probability moved by `slack` towards 1; None for infinity."""
    above = max(high.probability - slack, Fraction(0)) * max(low.neighbour_probability - slack, Fraction(0))
    below = (high.neighbour_probability + slack) * (low.probability + slack)
    if below == 0:
        return None
    return max(above / below, Fraction(1))


def _larger(one: Fraction | None, other: Fraction | None) -> bool:
    if one is None or other is None:
        return one is None and other is not None
    return one > other


def above_exp(value: Fraction | None, exponent: Fraction) -> bool:
    """Whether value > e^exponent, decided exactly; None is infinity. Ends, for e^exponent is irrational unless
    exponent is 0.
    """
    if value is None:
        return True
    if value <= 0 or exponent > abs(value.numerator).bit_length():
        return False
    bits = 128
    while True:
        lower, upper = exp_bounds(exponent, bits)
        if value > upper:
            return True
        if value <= lower:
            return False
        bits *= 2


def too_fine(excess: Fraction) -> str:
    """Why float laws leave a claim open."""
    return (
        f"the laws are given in floating point and exceed the claim by at most {float(excess):.2g}, which rounding may "
        f"have made (up to {float(FLOAT_SLACK):g} counts as rounding): give the distribution in Fractions for an answer"
    )


__all__ = [
    "FLOAT_SLACK",
    "ULPS",
    "ApproximateCheck",
    "BoundedRangeCheck",
    "ClaimCheck",
    "Extreme",
    "Findings",
    "Where",
    "above_exp",
    "describe_event",
    "event_witness",
    "too_fine",
    "widened",
]
