"""The log-optimal bet against (epsilon, delta)-indistinguishability of two output laws, and why it is a fair bet.

One pair of runs gives an outcome x from M(D) and, independently, x' from M(D'). With ``c = e^epsilon`` the claim says
that the laws (p0, q0) of x and x' lie in

    N = {(p0, q0) : H_c(p0 || q0) <= delta and H_c(q0 || p0) <= delta},     H_c(p || q) = sum (p - c q)_+ .

A bet multiplies the wealth by ``a(x) b(x')`` and is fair when its mean is at most 1 on all of N.

**Fair by construction.** Take numbers alpha, beta, lam, mu >= 0 with

    alpha + beta + delta (lam + mu) <= 2                                                                    (budget)

and for every outcome numbers ``0 <= u(x) <= lam``, ``0 <= v(x) <= mu`` such that

    a(x) = alpha + u(x) - c v(x) >= 0,      b(x) = beta - c u(x) + v(x) >= 0.                                (factors)

Then for every (p0, q0) in N

    E_p0[a] + E_q0[b] = alpha + beta + sum u (p0 - c q0) + sum v (q0 - c p0)
                     <= alpha + beta + lam H_c(p0 || q0) + mu H_c(q0 || p0) <= 2,

and, x and x' being independent, ``E[a(x) b(x')] = E_p0[a] E_q0[b] <= ((E_p0[a] + E_q0[b]) / 2)^2 <= 1`` by the
inequality of arithmetic and geometric means. Nothing else about u, v, alpha, ... matters: estimates and solvers may
err, the bet stays fair as long as it was fixed before x and x' were drawn. In particular an outcome never seen before
has the factors (alpha, beta) (u = v = 0). By linear-programming duality every pair (a, b) with ``sup_N E[a] + E[b] <=
2`` is dominated by one of this form.

**Log-optimal.** If x ~ p, x' ~ q, the growth ``E[log a] + E[log b]`` is largest for the reverse information
projection: ``a = p/p*``, ``b = q/q*`` where (p*, q*) in N minimises ``KL(p || p*) + KL(q || q*)``; the growth is that
minimum, and no test of level A decides in fewer than about ``log(1/A) / growth`` pairs on average. In the
parametrisation above, write ``r(x) = p(x) / (p(x) + q(x))``. For given (alpha, beta, lam, mu) the best u, v are
explicit,

    u(x) = min(lam, (r (alpha + beta/c) - alpha)_+),      v(x) = min(mu, ((1 - r) (beta + alpha/c) - beta)_+),

and the growth is concave in (alpha, beta, lam, mu). For delta = 0 the caps are absent (lam, mu = infinity cost
nothing), the budget is alpha + beta = 2 and one scalar root remains. For delta > 0 the four numbers come from a
damped Newton iteration.

References: Larsson, Ramdas and Ruf, "The numeraire e-variable and reverse information
projection" (2025); Gruenwald, de Heide and Koolen, "Safe testing" (2024), Theorem 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.special import xlogy

Array: TypeAlias = npt.NDArray[np.float64]

_SLACK = 1e-13
"""Budgets are 2 (1 - _SLACK): more than the rounding of a and b, which is a few units in the last place."""
_FLOOR = 1e-14
"""Estimated probabilities of 0 are moved here: no bet then stakes everything; the growth changes by about 1e-13."""
_TINY = 1e-300
LARGEST_EPSILON = 30.0
"""Above it no bet is made: growth is at most ``2 log(1 + e^-epsilon)``, so no number of runs would do."""
_ROOT_STEPS = 60
_EDGE = 1e-9
_NEWTON_STEPS = 60
_GAIN = 1e-15
"""Newton stops where the next step promises less growth than this, in nats per pair of runs."""


@dataclass(frozen=True, slots=True)
class Bet:
    """Factors of a fair bet for stacked problems over K categories (the module's docstring has the proof).

    a, b: shape (..., K): factors for an outcome of M(D) and of M(D') in each category.
    alpha, beta: shape (...,): factors for an outcome outside the K categories.
    growth: shape (...,): mean of log a(x) + log b(x') if x ~ p and x' ~ q, in nats per pair of runs; 0 where (p, q)
    lies in N.
    """

    a: Array
    b: Array
    alpha: Array
    beta: Array
    growth: Array


def numeraire(p: npt.ArrayLike, q: npt.ArrayLike, *, epsilon: npt.ArrayLike, delta: npt.ArrayLike = 0.0) -> Bet:
    """The log-optimal fair bet for the alternative (p, q) against (epsilon, delta), for many problems at once.

    p, q: shape (..., K), non-negative, each row summing to 1 (to rounding): the presumed laws of M(D) and M(D').
    epsilon (nats, >= 0), delta (in [0, 1]): broadcast against the leading axes.

    Where (p, q) is not outside N, as far as the solver can tell, the bet is a = b = 1. Fairness does not depend on p,
    q or the solver; optimality is to about 1e-9 in growth.

    Raises:
        ValueError: shapes that do not fit, or an entry that is negative or NaN.
    """
    p_in, q_in = np.broadcast_arrays(np.asarray(p, dtype=float), np.asarray(q, dtype=float))
    if p_in.ndim == 0 or not (np.all(p_in >= 0.0) and np.all(q_in >= 0.0)):
        raise ValueError("p and q must be arrays of non-negative numbers with at least one axis")
    lead = np.broadcast_shapes(p_in.shape[:-1], np.shape(epsilon), np.shape(delta))
    size = p_in.shape[-1]
    flat_p = np.broadcast_to(p_in, (*lead, size)).reshape(-1, size)
    flat_q = np.broadcast_to(q_in, (*lead, size)).reshape(-1, size)
    eps = np.broadcast_to(np.asarray(epsilon, dtype=float), lead).reshape(-1)
    c = np.exp(np.minimum(eps, LARGEST_EPSILON))
    d = np.broadcast_to(np.asarray(delta, dtype=float), lead).reshape(-1)
    if not (np.all(c >= 1.0) and np.all((d >= 0.0) & (d <= 1.0))):
        raise ValueError(f"epsilon must be >= 0 and delta in [0, 1], got {epsilon!r} and {delta!r}")
    present = flat_p + flat_q > 0.0
    flat_p = np.where(present, np.maximum(flat_p, _FLOOR), 0.0)
    flat_q = np.where(present, np.maximum(flat_q, _FLOOR), 0.0)
    dual = np.empty((len(c), 4))
    pure = d == 0.0
    if np.any(pure):
        dual[pure] = _solve_pure(flat_p[pure], flat_q[pure], c[pure])
    if not np.all(pure):
        approximate = ~pure
        dual[approximate] = _solve_approximate(flat_p[approximate], flat_q[approximate], c[approximate], d[approximate])
    a, b, dual = factors(dual, flat_p, flat_q, c, d)
    growth = np.sum(xlogy(flat_p, np.maximum(a, _TINY)) + xlogy(flat_q, np.maximum(b, _TINY)), axis=-1)
    idle = ~((growth > 0.0) & (eps <= LARGEST_EPSILON))
    a[idle] = b[idle] = 1.0
    dual[idle, :2] = 1.0
    growth[idle] = 0.0
    return Bet(
        a.reshape(*lead, size),
        b.reshape(*lead, size),
        dual[:, 0].reshape(lead),
        dual[:, 1].reshape(lead),
        growth.reshape(lead),
    )


def factors(dual: Array, p: Array, q: Array, c: Array, delta: Array) -> tuple[Array, Array, Array]:
    """Factors a, b of shape (n, K) with the best u, v for `dual`, shape (n, 4), scaled into the budget.

    The third value is `dual` = (alpha, beta, lam, mu) after scaling: ``alpha + beta + delta (lam + mu) = 2 - 2e-13``,
    with the caps cut to ``lam <= beta/c`` and ``mu <= alpha/c``, beyond which they cost without serving. With delta = 0
    the caps are just those.
    """
    alpha, beta = np.maximum(dual[:, 0], 0.0), np.maximum(dual[:, 1], 0.0)
    lam = np.where(delta > 0.0, np.clip(dual[:, 2], 0.0, beta / c), beta / c)
    mu = np.where(delta > 0.0, np.clip(dual[:, 3], 0.0, alpha / c), alpha / c)
    scaled = np.stack([alpha, beta, lam, mu], axis=-1)
    scaled *= (2.0 * (1.0 - _SLACK) / (alpha + beta + delta * (lam + mu)))[:, None]
    al, be, la, m = (column[:, None] for column in scaled.T)
    rate = c[:, None]
    total = p + q
    r = np.divide(p, total, out=np.full_like(total, 0.5), where=total > 0.0)
    u = np.clip(r * (al + be / rate) - al, 0.0, la)
    v = np.clip((1.0 - r) * (be + al / rate) - be, 0.0, m)
    empty = total == 0.0
    u[empty] = v[empty] = 0.0
    return np.maximum(al + u - rate * v, 0.0), np.maximum(be - rate * u + v, 0.0), scaled


def worst_null_mean(a: npt.ArrayLike, b: npt.ArrayLike, *, epsilon: float, delta: float) -> float:
    """Largest ``E_p0[a] + E_q0[b]`` over all (p0, q0) in N on these K categories, for arbitrary factors of shape (K,).

    The linear program's dual asks for the smallest ``alpha + beta + delta ((max a - alpha)_+ + (max b - beta)_+)``
    subject to ``c alpha + beta >= max(c a + b)`` and ``alpha + c beta >= max(a + c b)``: piecewise linear and convex
    in two unknowns, so attained at a crossing of two of its lines. A bet with value w becomes fair when a and b are
    multiplied by 2 / w.
    """
    first, second = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    c = float(np.exp(epsilon))
    top_a, top_b = float(first.max()), float(second.max())
    upper, lower = float((c * first + second).max()), float((first + c * second).max())
    if delta == 0.0:
        return (upper + lower) / (1.0 + c)
    corners = [
        (top_a, top_b),
        (top_a, max(upper - c * top_a, (lower - top_a) / c)),
        (max((upper - top_b) / c, lower - c * top_b), top_b),
    ]
    values = [x + y + delta * (max(top_a - x, 0.0) + max(top_b - y, 0.0)) for x, y in corners]
    if c > 1.0:
        # The sum of the crossing's coordinates is kept apart: the coordinates themselves are unsure for c near 1.
        total, gap = (upper + lower) / (1.0 + c), (upper - lower) / (c - 1.0)
        x, y = 0.5 * (total + gap), 0.5 * (total - gap)
        values.append(total + delta * (max(top_a - x, 0.0) + max(top_b - y, 0.0)))
    return min(values)


def _regions(p: Array, q: Array, c: Array, alpha: Array, beta: Array) -> tuple[npt.NDArray[np.bool_], ...]:
    """Categories with u > 0 and with v > 0: p/alpha > c q/beta, and q/beta > c p/alpha."""
    rate, al, be = c[:, None], alpha[:, None], beta[:, None]
    return p * be > rate * q * al, q * al > rate * p * be


def _solve_pure(p: Array, q: Array, c: Array) -> Array:
    """The case delta = 0: the root in (0, 2) of the decreasing derivative of the growth along alpha + beta = 2.

    With I the categories where u = v = 0, U those with u > 0, V those with v > 0, s = p + q:
    ``P_I/alpha - Q_I/beta + (c - 1) (s_U/(c alpha + beta) - s_V/(alpha + c beta)) = 0``.
    Newton's step where it stays inside the bracket, bisection where not.
    """
    low, high = np.full(len(c), _EDGE), np.full(len(c), 2.0 - _EDGE)
    alpha = np.ones(len(c))
    p_all, q_all = p.sum(axis=-1), q.sum(axis=-1)
    for _ in range(_ROOT_STEPS):
        beta = 2.0 - alpha
        up, down = _regions(p, q, c, alpha, beta)
        p_up, q_up = (p * up).sum(axis=-1), (q * up).sum(axis=-1)
        p_down, q_down = (p * down).sum(axis=-1), (q * down).sum(axis=-1)
        p_in, q_in = np.maximum(p_all - p_up - p_down, 0.0), np.maximum(q_all - q_up - q_down, 0.0)
        s_up, s_down = p_up + q_up, p_down + q_down
        over, under = c * alpha + beta, alpha + c * beta
        slope = p_in / alpha - q_in / beta + (c - 1.0) * (s_up / over - s_down / under)
        bend = (
            p_in / alpha**2
            + q_in / beta**2
            + (c - 1.0) ** 2 * (s_up / over**2 + s_down / under**2)
            + np.finfo(float).tiny
        )
        low, high = np.where(slope > 0.0, alpha, low), np.where(slope > 0.0, high, alpha)
        step = alpha + slope / bend
        inside = (step >= low) & (step <= high)
        following = np.where(inside, step, 0.5 * (low + high))
        if np.all(np.abs(following - alpha) <= 1e-13):
            break
        alpha = following
    return np.stack([alpha, 2.0 - alpha, np.zeros_like(alpha), np.zeros_like(alpha)], axis=-1)


def _solve_approximate(p: Array, q: Array, c: Array, delta: Array) -> Array:
    """The case delta > 0: maximise ``growth - (alpha + beta + delta (lam + mu))`` by damped Newton steps.

    The objective is concave, once continuously differentiable, and piecewise smooth; its maximiser has budget 2. Each
    problem has its own damping, raised until a step improves the objective; steps are computed for c lam and c mu,
    which are of the size of alpha and beta.
    """
    count = len(c)
    dual = np.tile([1.0, 1.0, 0.0, 0.0], (count, 1))
    damping = np.full(count, 1e-3)
    r = np.divide(p, p + q, out=np.full_like(p, 0.5), where=p + q > 0.0)
    highest, lowest = r.max(axis=-1), r.min(axis=-1)
    value, slope, bend = _objective(dual, p, q, c, delta)
    active = np.arange(count)
    for _ in range(_NEWTON_STEPS):
        z, g = dual[active], slope[active]
        free = np.ones_like(g, dtype=bool)
        free[:, 2:] = (z[:, 2:] > 0.0) | (g[:, 2:] > 0.0)
        pull = np.where(free, g, 0.0)
        scale = np.stack([np.ones_like(active), np.ones_like(active), 1.0 / c[active], 1.0 / c[active]], axis=-1)
        matrix = np.where(free[:, :, None] & free[:, None, :], bend[active], 0.0)
        matrix *= scale[:, :, None] * scale[:, None, :]
        matrix[:, range(4), range(4)] += damping[active, None] + np.where(free, 0.0, 1.0)
        step = scale * np.linalg.solve(matrix, (scale * pull)[:, :, None])[:, :, 0]
        going = np.sum(pull * step, axis=-1) > _GAIN
        active = active[going]
        if active.size == 0:
            break
        rows = (p[active], q[active], c[active], delta[active])
        trial = _inside(z[going], step[going], c[active], highest[active], lowest[active])
        new_value, new_slope, new_bend = _objective(trial, *rows)
        better = new_value > value[active]
        moved = active[better]
        dual[moved], value[moved] = trial[better], new_value[better]
        slope[moved], bend[moved] = new_slope[better], new_bend[better]
        damping[active] = np.clip(np.where(better, damping[active] / 8.0, damping[active] * 8.0), 1e-12, 1e6)
    return dual


def _inside(dual: Array, step: Array, c: Array, highest: Array, lowest: Array) -> Array:
    """The point after `step`, with alpha, beta, beta - c lam and alpha - c mu kept positive, and lam, mu within use.

    The four shrink to a tenth at most. lam beyond the largest u that any category asks for (`highest` and `lowest`
    are the extreme values of r = p/(p + q)) costs and serves nothing; so does mu.
    """
    alpha = np.maximum(dual[:, 0] + step[:, 0], 0.1 * dual[:, 0])
    beta = np.maximum(dual[:, 1] + step[:, 1], 0.1 * dual[:, 1])
    up_room = (1.0 - 0.1 * (1.0 - c * dual[:, 2] / dual[:, 1])) * beta / c
    down_room = (1.0 - 0.1 * (1.0 - c * dual[:, 3] / dual[:, 0])) * alpha / c
    up_use, down_use = highest * (alpha + beta / c) - alpha, (1.0 - lowest) * (beta + alpha / c) - beta
    lam = np.clip(dual[:, 2] + step[:, 2], 0.0, np.maximum(np.minimum(up_room, up_use), 0.0))
    mu = np.clip(dual[:, 3] + step[:, 3], 0.0, np.maximum(np.minimum(down_room, down_use), 0.0))
    return np.stack([alpha, beta, lam, mu], axis=-1)


def _objective(dual: Array, p: Array, q: Array, c: Array, delta: Array) -> tuple[Array, Array, Array]:
    """Value (n,), gradient (n, 4) and negative Hessian (n, 4, 4) of growth - (alpha + beta + delta (lam + mu))."""
    alpha, beta, lam, mu = dual.T
    rate = c[:, None]
    total = p + q
    r = np.divide(p, total, out=np.full_like(total, 0.5), where=total > 0.0)
    u_free = r * (alpha + beta / c)[:, None] - alpha[:, None]
    v_free = (1.0 - r) * (beta + alpha / c)[:, None] - beta[:, None]
    up, down = (u_free > 0.0) & (total > 0.0), (v_free > 0.0) & (total > 0.0)
    up_cap, down_cap = up & (u_free >= lam[:, None]), down & (v_free >= mu[:, None])
    u = np.where(up, np.minimum(u_free, lam[:, None]), 0.0)
    v = np.where(down, np.minimum(v_free, mu[:, None]), 0.0)
    a = np.maximum(alpha[:, None] + u - rate * v, _TINY)
    b = np.maximum(beta[:, None] - rate * u + v, _TINY)
    value = np.sum(xlogy(p, a) + xlogy(q, b), axis=-1) - (alpha + beta + delta * (lam + mu))
    pa, qb = p / a, q / b
    slope = np.stack(
        [
            pa.sum(axis=-1) - 1.0,
            qb.sum(axis=-1) - 1.0,
            np.sum(pa - rate * qb, axis=-1, where=up_cap) - delta,
            np.sum(qb - rate * pa, axis=-1, where=down_cap) - delta,
        ],
        axis=-1,
    )
    inner = ~(up | down)
    pa2, qb2 = pa / a, qb / b
    s_up = np.sum(total, axis=-1, where=up & ~up_cap) / (c * alpha + beta) ** 2
    s_down = np.sum(total, axis=-1, where=down & ~down_cap) / (alpha + c * beta) ** 2
    p_up, q_up = np.sum(pa2, axis=-1, where=up_cap), np.sum(qb2, axis=-1, where=up_cap)
    p_down, q_down = np.sum(pa2, axis=-1, where=down_cap), np.sum(qb2, axis=-1, where=down_cap)
    bend = np.zeros((len(c), 4, 4))
    bend[:, 0, 0] = np.sum(pa2, axis=-1, where=inner) + c * c * s_up + s_down + p_up + p_down
    bend[:, 1, 1] = np.sum(qb2, axis=-1, where=inner) + s_up + c * c * s_down + q_up + q_down
    bend[:, 0, 1] = bend[:, 1, 0] = c * (s_up + s_down)
    bend[:, 0, 2] = bend[:, 2, 0] = p_up
    bend[:, 1, 2] = bend[:, 2, 1] = -c * q_up
    bend[:, 2, 2] = p_up + c * c * q_up
    bend[:, 0, 3] = bend[:, 3, 0] = -c * p_down
    bend[:, 1, 3] = bend[:, 3, 1] = q_down
    bend[:, 3, 3] = q_down + c * c * p_down
    return value, slope, bend
