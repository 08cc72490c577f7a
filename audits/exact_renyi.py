"""Renyi-DP and zCDP claims against exact pairs, in ball arithmetic (Arb) refined until every comparison is settled.

With t = order - 1 and the privacy loss L = ln(P/Q), ``K(t) = ln E_P[e^{t L}] = t D_{1+t}(P||Q)``. K is convex,
``K(0) = 0`` and ``K(t) <= t max L``. Renyi DP bounds K at the listed orders, (xi, rho)-zCDP at all of them:
``K(t) <= rho t^2 + (rho + xi) t`` for t > 0 (Bun and Steinke 2016, Definition 1.1).

The tolerance is that of `audits.exact_checks`; for float laws a claim holds when K is below it with every ln P and
ln Q off by 1e-9, and is violated when K is above it with every probability moved by 1e-9 in the claim's favour.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction

import flint

from accounting import check_epsilon, round_up
from audits.exact_checks import (
    FLOAT_SLACK,
    ClaimCheck,
    Extreme,
    Findings,
    Where,
    above_exp,
    event_witness,
    too_fine,
    widened,
)
from audits.exact_pairs import FinitePair
from audits.verdicts import Witness

_FIRST_BITS = 128
_MOST_BITS = 1 << 13
_MOST_SPLITS = 2000


class LogMoments:
    """K of one direction. infinite: some outcome has Q = 0, so K(t) is infinite for all t > 0."""

    def __init__(self, direction: FinitePair, slack: Fraction = Fraction(0)) -> None:
        """slack: taken from every P and added to every Q, which makes K smaller."""
        groups = [(p - slack, q + slack) for p, q in direction.merged() if p > slack]
        self.infinite = any(q == 0 for _, q in groups)
        self.constant = all(p == q for p, q in groups)
        self.highest = max((p / q for p, q in groups if q > 0), default=Fraction(1))
        self._groups = groups
        self._logs: dict[int, list[tuple[flint.arb, flint.arb]]] = {}

    def ball(self, t: Fraction, bits: int) -> flint.arb:
        """K(t) as a ball; for t > 0 and finite K."""
        with flint.ctx.workprec(bits):
            if bits not in self._logs:
                self._logs[bits] = [(_arb(p).log(), _arb(q).log()) for p, q in self._groups]
            order, less = _arb(1 + t), _arb(t)
            exponents = [order * log_p - less * log_q for log_p, log_q in self._logs[bits]]
            top = max((x.mid() for x in exponents), key=_dyadic)
            return top + sum(((x - top).exp() for x in exponents), flint.arb(0)).log()

    def _accurate(self, t: Fraction) -> flint.arb:
        """K(t) to double precision or better, relative to 1 when it is small."""
        bits = _FIRST_BITS
        while bits <= _MOST_BITS:
            ball = self.ball(t, bits)
            if ball.is_finite() and ball.rad() <= 1e-20 * (1 + abs(ball.mid())):
                return ball
            bits *= 2
        raise ArithmeticError(f"K({t}) could not be bounded with {_MOST_BITS} bits")

    def at_most(self, t: Fraction, limit: Fraction) -> bool:
        """Whether K(t) <= limit. Ends: for rational t, limit != 0, e^K is algebraic and e^limit is not (Lindemann)."""
        if self.infinite:
            return False
        if self.constant or not self._groups:
            return limit >= 0
        bits = _FIRST_BITS
        while bits <= _MOST_BITS:
            with flint.ctx.workprec(bits):
                bound = _arb(limit)
            ball = self.ball(t, bits)
            if ball <= bound:
                return True
            if ball > bound:
                return False
            bits *= 2
        raise ArithmeticError(f"K({t}) could not be told from {limit} with {_MOST_BITS} bits")

    def above(self, t: Fraction) -> Fraction:
        """A short rational at least K(t), within about 2^-53 of its size."""
        return _dyadic(self._accurate(t).upper())

    def slope_at_most(self, limit: Fraction) -> bool:
        """Whether K'(0) = KL(P||Q) <= limit, for finite K. Ends, as logarithms of rationals are 0 or transcendental."""
        if self.constant:
            return limit >= 0
        bits = _FIRST_BITS
        while bits <= _MOST_BITS:
            with flint.ctx.workprec(bits):
                slope = sum((_arb(p) * (_arb(p).log() - _arb(q).log()) for p, q in self._groups), flint.arb(0))
                if slope <= _arb(limit):
                    return True
                if slope > _arb(limit):
                    return False
            bits *= 2
        raise ArithmeticError(f"KL could not be told from {limit} with {_MOST_BITS} bits")

    def curvature_at_most(self, end: Fraction, limit: Fraction) -> bool:
        """Whether K'' <= limit on [0, end] can be shown in one step: K'' is the variance of L under the law tilted by
        t, and t is taken as one ball over the interval.
        """
        with flint.ctx.workprec(_FIRST_BITS):
            half = _arb(end / 2)
            tilt = flint.arb(half.mid(), half.upper())
            losses = [_arb(p).log() - _arb(q).log() for p, q in self._groups]
            weights = [_arb(p) * (tilt * x).exp() for (p, _), x in zip(self._groups, losses, strict=True)]
            total = sum(weights, flint.arb(0))
            mean = sum((w * x for w, x in zip(weights, losses, strict=True)), flint.arb(0)) / total
            spread = sum((w * (x - mean) ** 2 for w, x in zip(weights, losses, strict=True)), flint.arb(0)) / total
            return bool(spread <= _arb(limit))

    def bounds(self, t: Fraction) -> tuple[float, float]:
        """The Renyi divergence of order 1 + t, rounded outward."""
        if self.infinite:
            return math.inf, math.inf
        ball = self._accurate(t)
        lower, upper = -round_up(-_dyadic(ball.lower()) / t), round_up(_dyadic(ball.upper()) / t)
        return max(lower, 0.0), max(upper, 0.0)


@dataclass(frozen=True, slots=True)
class _Closest:
    """Where a direction came closest to its claim, or exceeds it most: the ratio of what was found to what was
    claimed.
    """

    share: float
    order: float
    found: tuple[float, float]
    claimed: float
    direction: FinitePair
    where: Where


class _RenyiCheck(ClaimCheck):
    """What the two claims share; a subclass says how one direction is compared."""

    def __init__(self) -> None:
        self._violated = self._open = False
        self._unproved: str | None = None
        self._pure = Extreme()
        self._only_here = Fraction(0)
        self._closest: _Closest | None = None
        self._violation: _Closest | None = None

    @abstractmethod
    def _compare(self, moments: LogMoments, sure: LogMoments, slack: Fraction) -> tuple[bool, bool, Fraction]:
        """(holds, surely violated, the t at which the direction comes closest)."""

    @abstractmethod
    def _claimed(self, order: float) -> float:
        """The claimed divergence of this order."""

    def observe(self, pair: FinitePair, where: Where) -> None:
        for direction, place in ((pair, where), (pair.reversed, where[::-1])):
            slack = Fraction(0) if direction.exact else FLOAT_SLACK
            moments = LogMoments(direction)
            holds, violated, t = self._compare(moments, LogMoments(direction, slack) if slack else moments, slack)
            self._violated = self._violated or violated
            self._open = self._open or not (holds or violated)
            here = self._at(moments, t, direction, place)
            self._closest = _worse(self._closest, here)
            self._violation = _worse(self._violation, here) if violated else self._violation
            self._only_here = max(self._only_here, direction.only_here)
            self._pure.offer(direction, place, slack, direction.only_here)

    def _at(self, moments: LogMoments, t: Fraction, direction: FinitePair, where: Where) -> _Closest:
        order = float(1 + t)
        found, claimed = moments.bounds(t), self._claimed(order)
        share = found[1] / claimed if claimed > 0 else (math.inf if found[1] > 0 else 0.0)
        return _Closest(share, order, found, claimed, direction, where)

    def findings(self) -> Findings:
        closest = self._violation or self._closest
        epsilon = self._pure.bounds()
        undecided = None
        if self._open and not self._violated:
            undecided = self._unproved or too_fine(FLOAT_SLACK)
        return Findings(
            violated=self._violated,
            undecided=undecided,
            claim_epsilon=math.inf,
            claim_delta=0.0,
            epsilon_lower=epsilon.lower,
            epsilon_upper=epsilon.upper,
            delta_found=round_up(self._only_here) + 0.0,
            worst=None if closest is None else _witness(closest),
            found=() if closest is None else (("order", (closest.order, closest.order)), ("divergence", closest.found)),
            notes=() if closest is None else (_note(closest),),
        )


class RdpCheck(_RenyiCheck):
    """Renyi DP: ``D_order(P||Q) <= value`` at each listed order (Mironov 2017, Definition 4)."""

    def __init__(self, orders: tuple[float, ...], values: tuple[float, ...]) -> None:
        super().__init__()
        self._values = dict(zip(orders, values, strict=True))

    def _compare(self, moments: LogMoments, sure: LogMoments, slack: Fraction) -> tuple[bool, bool, Fraction]:
        holds, violated = True, False
        closest, most = Fraction(1), -math.inf
        for order, value in self._values.items():
            t = Fraction(order) - 1
            limit = t * widened(value) + slack * (1 + 2 * t)
            if not moments.at_most(t, limit):
                holds = False
                violated = violated or not sure.at_most(t, limit)
            found = moments.bounds(t)[1]
            share = found / value if value > 0 else (math.inf if found > 0 else 0.0)
            if share > most:
                closest, most = t, share
        return holds, violated, closest

    def _claimed(self, order: float) -> float:
        return self._values[order]


class ZcdpCheck(_RenyiCheck):
    """(xi, rho)-zCDP: ``D_order(P||Q) <= xi + rho order`` at every order over 1.

    Between two orders K lies below its chord, and the claimed parabola minus a chord has its minimum in closed form;
    intervals are halved until each is settled. Past ``t = (max L - rho - xi)/rho`` the bound ``K <= t max L`` settles
    the rest.
    """

    def __init__(self, rho: float, xi: float) -> None:
        super().__init__()
        self._rho, self._xi = check_epsilon("rho", rho), check_epsilon("xi", xi)
        self._wide_rho, self._wide_xi = widened(rho), widened(xi)

    def _claimed(self, order: float) -> float:
        return self._xi + self._rho * order

    def _limit(self, t: Fraction, slack: Fraction) -> Fraction:
        return t * (self._wide_xi + self._wide_rho * (1 + t)) + slack * (1 + 2 * t)

    def _compare(self, moments: LogMoments, sure: LogMoments, slack: Fraction) -> tuple[bool, bool, Fraction]:
        if moments.infinite:
            return False, not sure.at_most(Fraction(1), self._limit(Fraction(1), slack)), Fraction(1)
        base = self._wide_rho + self._wide_xi + 2 * slack
        if not above_exp(moments.highest, base):
            return True, False, Fraction(1)
        if self._wide_rho == 0:
            # D of order infinity is max L, and a bound xi at every order is one on it.
            return False, above_exp(sure.highest, base), Fraction(1 << 20)
        return self._walk(moments, sure, slack, base)

    def _walk(
        self, moments: LogMoments, sure: LogMoments, slack: Fraction, base: Fraction
    ) -> tuple[bool, bool, Fraction]:
        rho = self._wide_rho
        if not moments.slope_at_most(base):
            t = Fraction(1)
            while moments.at_most(t, self._limit(t, slack)) and t > Fraction(1, 1 << 60):
                t /= 2
            return False, not sure.at_most(t, self._limit(t, slack)), t
        end = (_log_above(moments.highest) - base) / rho
        known = {Fraction(0): Fraction(0)}
        queue, closest, most = [(Fraction(0), end)], end, -math.inf
        for _ in range(_MOST_SPLITS):
            if not queue:
                return True, False, closest
            low, high = queue.pop()
            if high not in known:
                limit = self._limit(high, slack)
                known[high] = moments.above(high)
                if known[high] > limit and not moments.at_most(high, limit):
                    return False, not sure.at_most(high, limit), high
                if known[high] / limit > most:
                    closest, most = high, float(known[high] / limit)
            slope = (known[high] - known[low]) / (high - low)
            turn = min(max((slope - base) / (2 * rho), low), high)
            if self._limit(turn, slack) >= known[low] + slope * (turn - low):
                continue
            if low == 0 and moments.curvature_at_most(high, 2 * rho):
                continue
            middle = _short((low + high) / 2)
            if not low < middle < high:
                break
            # The left half is taken first: its upper end is the lower end of the right half, and is tested there.
            queue += [(middle, high), (low, middle)]
        self._unproved = f"the divergence and its bound are too close to be told apart near order {float(1 + low):.6g}"
        return False, False, closest


def _worse(one: _Closest | None, other: _Closest) -> _Closest:
    return other if one is None or other.share > one.share else one


def _note(closest: _Closest) -> str:
    return (
        f"the claim is about Renyi divergences (found: order, divergence): {closest.found[1]:.6g} was found and "
        f"{closest.claimed:.6g} is claimed at order {closest.order:.6g}, where the laws come closest to the claim"
    )


def _witness(closest: _Closest) -> Witness:
    """The outcomes whose loss is above the claimed divergence: there are some whenever it is exceeded."""
    witness = event_witness(closest.direction.worst_event(closest.claimed), closest.where)
    return Witness(
        dataset=witness.dataset,
        neighbour=witness.neighbour,
        event=(
            f"{witness.event} (Renyi divergence of order {closest.order:.6g}: {closest.found[1]:.6g}, "
            f"claimed {closest.claimed:.6g})"
        ),
        probability=witness.probability,
        neighbour_probability=witness.neighbour_probability,
        outcomes=witness.outcomes,
    )


def _log_above(factor: Fraction) -> Fraction:
    """A rational a little above ln(factor)."""
    with flint.ctx.workprec(_FIRST_BITS):
        return _dyadic(_arb(factor).log().upper())


def _short(x: Fraction) -> Fraction:
    """A rational near x > 0 with a short denominator, so that halving does not make numbers grow."""
    return Fraction(float(x))


def _arb(x: Fraction) -> flint.arb:
    return flint.arb(flint.fmpq(x.numerator, x.denominator))


def _dyadic(x: flint.arb) -> Fraction:
    """The exact value of a ball of radius zero."""
    mantissa, exponent = (int(part) for part in x.man_exp())
    return Fraction(mantissa << exponent) if exponent >= 0 else Fraction(mantissa, 1 << -exponent)


__all__ = ["LogMoments", "RdpCheck", "ZcdpCheck"]
