"""Verdict records: what they refuse to hold, what they say, and the JSON that INTERFACES promises."""

from __future__ import annotations

import dataclasses
import json
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accounting import Relation, Trust
from audits.rendering import json_number, json_value, readable
from audits.verdicts import Status, Verdict, Witness

WITNESS = Witness(
    dataset=(0, 1),
    neighbour=(0, 1, 1),
    event="outcome = 3",
    probability=0.75,
    neighbour_probability=0.25,
    outcomes=(3,),
)


def verdict(**changes: Any) -> Verdict:
    fields: dict[str, Any] = {
        "name": "noisy count",
        "mechanism": "noisy_count",
        "relation": Relation.ADD_OR_REMOVE_ONE,
        "claim_epsilon": 1.0,
        "claim_delta": 0.0,
        "status": Status.PROVED,
        "method": "exact",
        "source": "the author",
        "trust": Trust.EXACT,
        "domain": "all datasets of 0 to 4 records from {0, 1}",
        "pairs_tried": 24,
        "pairs_total": 24,
        "epsilon_lower": 0.5,
        "epsilon_upper": 0.5,
    }
    return Verdict(**{**fields, **changes})


REFUTED = {"status": Status.REFUTED, "witness": WITNESS, "epsilon_lower": math.log(3), "epsilon_upper": math.inf}
CONSISTENT = {
    "status": Status.CONSISTENT,
    "method": "sequential",
    "trust": Trust.EMPIRICAL,
    "runs": 200_000,
    "confidence": 0.99,
    "epsilon_upper": None,
    "epsilon_detectable": 1.25,
}


def test_json_has_the_promised_fields() -> None:
    entry = verdict(**REFUTED, promise="at most four records", seconds=0.5).to_json()
    promised = {
        "name": "noisy count",
        "mechanism": "noisy_count",
        "relation": "add-remove",
        "promise": "at most four records",
        "claimed": {"epsilon": 1.0, "delta": 0.0},
        "verdict": "REFUTED",
        "method": "exact",
        "epsilon_lower": math.log(3),
        "epsilon_upper": "inf",
        "epsilon_detectable": None,
        "runs": 0,
        "pairs_tried": 24,
        "seconds": 0.5,
        "source": "the author",
    }
    assert {key: entry[key] for key in promised} == promised
    witness = entry["witness"]
    assert (witness["dataset"], witness["neighbour"], witness["event"]) == ([0, 1], [0, 1, 1], "outcome = 3")
    assert json.loads(json.dumps(entry, allow_nan=False)) == entry


@pytest.mark.parametrize("changes", [{}, REFUTED, CONSISTENT, {"status": Status.INCONCLUSIVE, "reason": "stopped"}])
def test_every_status_serialises_without_bare_infinities(changes: dict[str, Any]) -> None:
    entry = verdict(**changes, delta_found=math.inf, found=(("range", (0.5, math.inf)),)).to_json()
    json.dumps(entry, allow_nan=False)
    assert entry["found"] == {"range": [0.5, "inf"]}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"status": Status.REFUTED}, "witness must be present"),
        ({"witness": WITNESS}, "witness must be present"),
        ({"epsilon_lower": math.nan}, "epsilon_lower must not be NaN"),
        ({"delta_found": math.nan}, "delta_found must not be NaN"),
        ({"confidence": 1.0}, "confidence must be in"),
        ({"trust": Trust.EMPIRICAL}, "PROVED on empirical trust"),
        ({"error": "it raised"}, "PROVED"),
        ({"interrupted": True}, "PROVED"),
        ({"relation": "swap"}, "relation must be"),
        ({"status": "MAYBE"}, "MAYBE"),
    ],
)
def test_contradictions_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        verdict(**changes)


@pytest.mark.parametrize("probability", [-0.1, 1.1, math.nan])
def test_a_witness_holds_probabilities(probability: float) -> None:
    with pytest.raises(ValueError, match="probability must be in"):
        dataclasses.replace(WITNESS, probability=probability)


def test_records_are_frozen_and_status_compares_with_its_word() -> None:
    one = verdict()
    with pytest.raises(dataclasses.FrozenInstanceError):
        one.status = Status.REFUTED  # type: ignore[misc]
    assert one.verdict == "PROVED"
    assert str(one.verdict) == "PROVED"
    assert verdict(relation="replace-one").relation is Relation.REPLACE_ONE


def test_a_proof_names_its_domain_and_what_it_leaves_open() -> None:
    text = verdict().summary()
    assert text.startswith("PROVED: 1-DP under add-remove")
    assert "all 24 pairs of neighbours (all datasets of 0 to 4 records from {0, 1})" in text
    assert "epsilon 0.5 at delta 0" in text
    assert "Other datasets are not covered" in text
    assert "sampler" in text


def test_a_pass_says_what_would_have_been_caught() -> None:
    text = verdict(**CONSISTENT).summary()
    assert "not refuted by 200,000 runs" in text
    assert "confidence 0.99" in text
    assert "epsilon 1.25 at the same delta would have been caught with 95 % power" in text
    assert "not a proof" in text
    assert "however large" in verdict(**{**CONSISTENT, "epsilon_detectable": math.inf}).summary()
    assert "not computed" in verdict(**{**CONSISTENT, "epsilon_detectable": None}).summary()


def test_a_refutation_shows_its_witness_and_how_sure_it_is() -> None:
    exact = verdict(**REFUTED).summary()
    assert "is false by exact calculation" in exact
    assert "on (0, 1) against (0, 1, 1), the event outcome = 3 has probability 0.75 against 0.25" in exact
    assert "the true epsilon at delta 0 is at least 1.09861" in exact
    sampled = verdict(**{**CONSISTENT, **REFUTED, "trust": Trust.EMPIRICAL}).summary()
    assert "at confidence 0.99 after 200,000 runs" in sampled
    bare = dataclasses.replace(WITNESS, probability=None)
    assert "has probability" not in verdict(**{**REFUTED, "witness": bare}).summary()


def test_an_open_verdict_says_why() -> None:
    stopped = verdict(status=Status.INCONCLUSIVE, reason="interrupted by the user", pairs_tried=3).summary()
    assert "3 of 24 pairs of neighbours" in stopped
    assert "interrupted by the user" in stopped
    failed = verdict(status=Status.INCONCLUSIVE, reason="stopped", error="it raised").summary()
    assert "it raised" in failed


def test_the_claim_in_words() -> None:
    assert verdict(claim_delta=1e-6, promise="few").claim == "(1, 1e-06)-DP under add-remove, promised: few"
    assert verdict(statement="1-bounded-range under replace-one").claim == "1-bounded-range under replace-one"


# Rendering of users' values


class Nameless:
    def __repr__(self) -> str:
        raise RuntimeError("no repr")


class Addressed:
    pass


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Fraction(1, 3), "1/3"),
        ((Fraction(1, 2), "a", None), "(1/2, 'a', None)"),
        ((1,), "(1,)"),
        ([], "[]"),
        (np.float64(0.5), "0.5"),
        ((np.int64(3), np.bool_(True)), "(3, True)"),
        (frozenset({"b", "a"}), "{'a', 'b'}"),
        ({"k": Fraction(1, 7)}, "{'k': 1/7}"),
        (math.nan, "nan"),
        (-0.0, "-0.0"),
        (Nameless(), "<Nameless without a repr>"),
        ("a\nb", "'a\\nb'"),
        ([10**5000, Fraction(1, 10**5000)], "[<int without a repr>, <Fraction without a repr>]"),
        (np.array([[1, 2], [3, 4]]), "array([[1, 2], [3, 4]])"),
    ],
)
def test_readable(value: object, text: str) -> None:
    assert readable(value) == text


def test_memory_addresses_are_left_out() -> None:
    assert readable(Addressed()) == readable(Addressed())
    assert "0x" not in readable(Addressed())


@pytest.mark.parametrize(
    "value",
    [list(range(10**6)), "x" * 10**6, dict.fromkeys(range(1000), "y" * 100), np.zeros(10**5), [[[[[[[[1]]]]]]]]],
)
def test_long_values_are_cut(value: object) -> None:
    assert len(readable(value, limit=80)) <= 80
    assert len(json.dumps(json_value(value, limit=100))) <= 200


plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**6), 10**6)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@given(plain)
def test_plain_data_stays_data(value: object) -> None:
    assert json.loads(json.dumps(json_value(value), allow_nan=False)) == value


def test_what_is_not_plain_becomes_text() -> None:
    assert json_value((Fraction(1, 3), math.inf, {1: 2}, Addressed)) == ["1/3", "inf", "{1: 2}", readable(Addressed)]
    assert json_value({"a": (1, math.nan)}) == {"a": [1, "nan"]}


@pytest.mark.parametrize(("value", "shown"), [(1.5, 1.5), (math.inf, "inf"), (-math.inf, "-inf"), (None, None)])
def test_json_numbers(value: float | None, shown: object) -> None:
    assert json_number(value) == shown


def test_nan_is_no_json_number() -> None:
    with pytest.raises(ValueError, match="NaN"):
        json_number(math.nan)
