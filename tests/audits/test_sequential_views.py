"""Outcomes into categories: what counts as the same outcome, and that every map is learned from the past only."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from audits.canonical import UncountableError
from audits.outcomes import CELL_LIMIT, Batch, CellView
from audits.scores import HISTORY_LIMIT, OrdinalView, ScoreView


def learn(view: Any, xs: Any, ys: Any) -> None:
    first, second = Batch.of(xs), Batch.of(ys)
    view.learn(first, second, (view.count(first), view.count(second)))


def cells(view: CellView, outcomes: list[Hashable]) -> list[int]:
    """The category of each outcome."""
    return [int(np.argmax(view.count(Batch.of([outcome])))) for outcome in outcomes]


def test_an_outcome_is_a_category_after_the_batch_that_brings_it() -> None:
    view = CellView()
    batch = Batch.of(["a", "b", "a"])
    assert view.count(batch).tolist() == [3.0]
    learn(view, ["a", "b", "a"], ["b", "b", "c"])
    assert view.x.tolist() == [0.0, 2.0, 1.0, 0.0]
    assert view.y.tolist() == [0.0, 0.0, 2.0, 1.0]
    assert view.count(Batch.of(["a", "c", "d"])).tolist() == [1.0, 1.0, 0.0, 1.0]


def test_outcomes_are_the_same_when_they_are_equal() -> None:
    view = CellView()
    learn(view, [True, 1, 1.0, Fraction(1), np.int64(1)], [0.0, -0.0, 0, False, np.float32(0.0)])
    assert view.x.tolist() == [0.0, 5.0, 0.0]
    assert view.y.tolist() == [0.0, 0.0, 5.0]
    view = CellView()
    learn(view, [float("nan"), np.float64("nan"), None], [math.nan, "nan", (1, math.nan)])
    assert cells(view, [-math.nan, None, "nan", (1, float("nan")), (1, 2)]) == [1, 2, 3, 4, 0]


def test_lists_and_arrays_in_outcomes_are_compared_by_value_and_the_rest_is_refused() -> None:
    view = CellView()
    learn(view, [[1, 2], np.array([1, 2])], [{"a": [1]}, {"a": (1,)}])
    assert view.x.tolist() == [0.0, 2.0, 0.0]
    assert view.y.tolist() == [0.0, 0.0, 2.0]
    with pytest.raises(UncountableError, match="equals only itself"):
        Batch.of([object()])


@given(
    values=st.lists(st.one_of(st.integers(-3, 3), st.sampled_from([0.5, -0.0, math.nan, math.inf])), min_size=1),
    later=st.lists(st.sampled_from([-2.0, 0.0, 0.5, 7.0, math.nan, math.inf]), min_size=1),
)
def test_arrays_are_counted_like_lists(values: list[float], later: list[float]) -> None:
    by_list, by_array = CellView(), CellView()
    learn(by_list, values, values[::-1])
    learn(by_array, np.array(values, dtype=float), np.array(values[::-1], dtype=float))
    for value in {*values, *later}:
        one, other = by_list.count(Batch.of([value])), by_array.count(Batch.of(np.array([value])))
        assert bool(one[0]) == bool(other[0])
    assert by_list.count(Batch.of(later))[0] == by_array.count(Batch.of(np.array(later)))[0]
    assert sorted(by_list.x) == sorted(by_array.x)


@pytest.mark.parametrize(
    "values",
    [
        np.array([3, -7, 3, 2**40, -(2**62)]),
        np.array([250, 3, 3], dtype=np.uint8),
        np.array([-128, 127, 0], dtype=np.int8),
        np.array([2**63 + 5, 2**63 + 7, 2**63 + 5], dtype=np.uint64),
        np.array([True, False, True]),
        np.array(["a", "bb", "a"]),
        np.array([[1, 2], [1, 2], [3, 4]]),
        np.array([[-(2**62), 2**62], [-(2**62), 2**62], [0, 0]]),
        np.array([[True, False], [True, True], [True, False]]),
        np.array([[0.5, -0.0], [0.5, 0.0], [1.5, 0.0]]),
        np.array([[2**63 + 5, 1], [2**63 + 7, 1], [2**63 + 5, 1]], dtype=np.uint64),
        np.zeros((0, 3)),
    ],
)
def test_tallies_of_arrays(values: np.ndarray[Any, Any]) -> None:
    expected = Counter(map(tuple, values.tolist()) if values.ndim == 2 else values.tolist())
    assert Batch.of(values).tally == expected


def test_the_number_of_categories_is_bounded() -> None:
    rng = np.random.default_rng(1)
    view = CellView()
    for _ in range(60):
        learn(view, rng.integers(0, 3000, 500), rng.integers(0, 3000, 500))
    assert len(view.x) <= CELL_LIMIT + 1
    assert view.x.sum() == view.y.sum() == 30_000
    assert view.x.min() >= 0.0
    assert np.all(view.halves >= 0.0)
    learn(view, rng.normal(size=100_000), rng.normal(size=100_000))
    assert view.distinct < 10_000


def test_numbers_and_vectors_are_recognised() -> None:
    assert Batch.of([1, None, 10**400, "x"]).numbers == pytest.approx([1.0, math.nan, math.inf, math.nan], nan_ok=True)
    assert Batch.of([-(10**400)]).numbers == pytest.approx([-math.inf])
    assert Batch.of(["a"]).numbers is None
    assert Batch.of([(1, 2.5), (0, math.nan)]).vectors == pytest.approx(
        np.array([[1, 2.5], [0, math.nan]]), nan_ok=True
    )
    for other in ([(1, 2), (1, 2, 3)], [(1, "a")], [(1,)], [(1, 2), 3], []):
        assert Batch.of(other).vectors is None
    assert Batch.of(np.ones((3, 1))).numbers is not None


def test_ordinal_categories_are_quantiles_of_the_past_and_final_in_the_end() -> None:
    rng = np.random.default_rng(2)
    view = OrdinalView()
    learn(view, rng.normal(size=3000), rng.normal(size=3000))
    edges = view.edges.copy()
    assert 20 <= len(edges) <= 37
    assert view.x.sum() == view.y.sum() == 3000
    view.count(Batch.of(rng.normal(5.0, 1.0, size=100)))
    assert np.array_equal(view.edges, edges)
    while view._history is not None:
        learn(view, rng.normal(size=2000), rng.normal(size=2000))
    edges = view.edges.copy()
    assert view._pairs >= HISTORY_LIMIT
    pooled = view.x + view.y
    assert pooled[1:].min() > 0.0
    learn(view, rng.normal(3.0, 1.0, size=9000), rng.normal(size=9000))
    assert np.array_equal(view.edges, edges)
    assert view.x.sum() == view.y.sum()


def test_atoms_and_what_is_no_number_have_categories_of_their_own() -> None:
    view = OrdinalView()
    learn(view, [0, 1, 1, 2, None, math.nan], [2, 2, 1, "x", -math.inf, math.inf])
    assert view.edges.tolist() == [0.0, 1.0, 2.0, math.inf]
    assert view.x.tolist() == [2.0, 0.0, 1.0, 2.0, 1.0, 0.0]
    assert view.y.tolist() == [1.0, 1.0, 0.0, 1.0, 2.0, 1.0]
    members = np.array([False, True, True, False, True, True])
    assert view.describe(members)[0] == "outcome < 1 or outcome >= 2"
    members[0] = True
    assert view.describe(members)[0].endswith("or outcome is not a real number")


def test_past_counts_of_a_score_are_honest() -> None:
    """Equal laws of ten fair bits: the score's categories must not tell the sides apart, though it was learned on them.

    Leaving out each outcome alone (and not folds of the past) fails here: it moves equal outcomes of the two sides
    apart, and the counts differ by hundreds of standard errors.
    """
    rng = np.random.default_rng(3)
    view = ScoreView(10)
    learn(view, rng.integers(0, 2, (4000, 10)), rng.integers(0, 2, (4000, 10)))
    total = view.x + view.y
    used = total > 10
    statistic = np.sum((view.x - view.y)[used] ** 2 / total[used])
    # Chi-square with at most 36 degrees of freedom exceeds 90 with probability 2e-6.
    assert statistic < 90.0


def test_a_score_finds_the_coordinate_that_differs() -> None:
    rng = np.random.default_rng(4)
    view = ScoreView(5)
    shift = np.array([0.0, 0.0, 0.0, 2.0, 0.0])
    learn(view, rng.normal(size=(2000, 5)) + shift, rng.normal(size=(2000, 5)))
    fresh = view.count(Batch.of(rng.normal(size=(1000, 5)) + shift)), view.count(Batch.of(rng.normal(size=(1000, 5))))
    places = np.arange(len(fresh[0]))
    assert fresh[0] @ places > fresh[1] @ places + 5000
    assert "(coordinates 3," in view.describe(places > 20)[0]
    strange = view.count(Batch.of([(1, 2, 3), "text", (1, 2, 3, 4, 5), (math.nan,) * 5]))
    assert strange[0] == 3.0


def test_events_are_named_by_their_outcomes() -> None:
    view = CellView()
    learn(view, ["yes"] * 3 + ["no"], ["no"] * 3 + ["yes"])
    members = np.array([False, True, False])
    assert view.describe(members) == ("outcome in {'yes'}", ("yes",))
    # Category 0 never occurred, so the event can be named by what is in it.
    members[0] = True
    assert view.describe(members) == ("outcome in {'yes'}", ("yes",))
    view = CellView()
    learn(view, list(range(10)), list(range(10, 20)))
    text, outcomes = view.describe(np.arange(17) > 0)
    assert text.endswith("and 8 more}")
    assert outcomes is not None
    assert len(outcomes) == 16
    assert view.describe(np.arange(17) == 0) == (f"outcome not in {view.describe(np.arange(17) > 0)[0][11:]}", None)
