"""Events and claims to JSON and back; what is refused, and how it is said."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import attr
import dp_accounting as dpa
import numpy as np
import pytest
from dp_accounting import DpEvent, dp_event
from hypothesis import given
from hypothesis import strategies as st

from accounting import (
    ApproximateDpEvent,
    BoundedRangeDpEvent,
    Claim,
    DiscreteGaussianDpEvent,
    DominatingPairDpEvent,
    GroupDpEvent,
    LedgerFileError,
    PermuteAndFlipDpEvent,
    RdpDpEvent,
    Relation,
    Trust,
    UnsupportedEventError,
)
from accounting.codec import (
    canonical_json,
    claim_from_json,
    claim_to_json,
    event_from_json,
    event_to_json,
    parse_json,
)
from accounting.event_table import MAX_DEPTH, check_event, event_kinds

positive = st.floats(min_value=1e-300, max_value=1e300)
unit = st.floats(min_value=0.0, max_value=1.0)
counts = st.integers(1, 10**9)


def _mixture(weights: list[int], sensitivities: list[float], sigma: float) -> DpEvent:
    size = min(len(weights), len(sensitivities))
    total = sum(weights[:size])
    return dp_event.MixtureOfGaussiansDpEvent(sigma, sensitivities[:size], [w / total for w in weights[:size]])


leaves = st.one_of(
    st.builds(dpa.NoOpDpEvent),
    st.builds(dpa.NonPrivateDpEvent),
    st.builds(dpa.GaussianDpEvent, positive),
    st.builds(dpa.LaplaceDpEvent, positive),
    st.builds(dp_event.DiscreteLaplaceDpEvent, positive, counts),
    st.builds(dpa.RandomizedResponseDpEvent, unit, counts),
    st.builds(dpa.SingleEpochTreeAggregationDpEvent, positive, st.one_of(counts, st.lists(counts, max_size=3))),
    st.builds(
        _mixture,
        st.lists(st.integers(1, 9), min_size=1, max_size=4),
        st.lists(st.floats(0, 9), min_size=4, max_size=4),
        positive,
    ),
    st.builds(dpa.ZCDpEvent, positive, st.floats(0, 5)),
    st.builds(dp_event.TruncatedSubsampledGaussianDpEvent, counts, unit, counts, positive),
    st.builds(ApproximateDpEvent, positive, unit),
    st.builds(BoundedRangeDpEvent, positive),
    st.builds(lambda p, q: DominatingPairDpEvent((p, 1 - p), (q, 1 - q)), unit, unit),
    st.builds(DiscreteGaussianDpEvent, positive, counts),
    st.builds(PermuteAndFlipDpEvent, positive),
    st.builds(
        lambda orders, value: RdpDpEvent(tuple(sorted(orders)), tuple(value * order for order in sorted(orders))),
        st.sets(st.floats(1.001, 100.0), min_size=1, max_size=4),
        st.floats(0.0, 9.0),
    ),
)
trees = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.builds(dpa.SelfComposedDpEvent, inner, counts),
        st.builds(dpa.ComposedDpEvent, st.lists(inner, max_size=3)),
        st.builds(dpa.PoissonSampledDpEvent, unit, inner),
        st.builds(GroupDpEvent, inner, counts),
        st.builds(lambda m, r, e: dpa.SampledWithReplacementDpEvent(m, r, e), counts, counts, inner),
        st.builds(lambda m, r, e: dpa.SampledWithoutReplacementDpEvent(m + r, m, e), counts, counts, inner),
        st.builds(dp_event.RepeatAndSelectDpEvent, inner, positive, st.sampled_from([0.0, 1.0, math.inf])),
    ),
    max_leaves=8,
)


def _same(one: Any, other: Any) -> bool:
    """Equal field by field, reading sequences as tuples; shares nothing with the codec's own table."""
    if isinstance(one, DpEvent):
        return type(one) is type(other) and all(
            _same(getattr(one, field.name), getattr(other, field.name)) for field in attr.fields(type(one))
        )
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(_same(a, b) for a, b in zip(one, other, strict=True))
    return bool(one == other)


@given(trees)
def test_an_event_survives_its_text(event: DpEvent) -> None:
    text = json.dumps(event_to_json(event), allow_nan=False)
    back = event_from_json(parse_json(text))
    assert _same(event, back)
    assert back == check_event(event)
    assert hash(back) == hash(check_event(event))
    assert canonical_json(event_to_json(back)) == canonical_json(event_to_json(event))


@given(st.floats(min_value=0.0, allow_infinity=False))
def test_every_double_comes_back_exactly(sigma: float) -> None:
    back = event_from_json(parse_json(canonical_json(event_to_json(dpa.GaussianDpEvent(sigma)))))
    assert isinstance(back, dpa.GaussianDpEvent)
    assert back.noise_multiplier == sigma


def test_the_table_holds_every_event_of_dp_accounting_but_the_unsupported_one() -> None:
    theirs = {
        value
        for value in vars(dp_event).values()
        if isinstance(value, type) and issubclass(value, DpEvent) and value not in (DpEvent, dpa.UnsupportedDpEvent)
    }
    assert theirs <= {kind.cls for kind in event_kinds()}


def test_the_table_knows_every_field() -> None:
    for kind in event_kinds():
        assert sorted(field.name for field in kind.fields) == sorted(field.name for field in attr.fields(kind.cls))


NUMBERS_OUT_OF_RANGE: list[tuple[Callable[[Any], DpEvent], str, list[Any]]] = [
    (dpa.GaussianDpEvent, "event.noise_multiplier", [math.nan, math.inf, -1.0, -math.inf]),
    (dpa.LaplaceDpEvent, "event.noise_multiplier", [math.nan, math.inf, -1.0]),
    (lambda x: dp_event.DiscreteLaplaceDpEvent(x, 1), "event.noise_parameter", [math.nan, math.inf, 0.0, -1.0]),
    (lambda x: dp_event.DiscreteLaplaceDpEvent(1.0, x), "event.sensitivity", [-1]),
    (lambda x: dpa.RandomizedResponseDpEvent(x, 2), "event.noise_parameter", [math.nan, -0.1, 1.1]),
    (lambda x: dpa.RandomizedResponseDpEvent(0.5, x), "event.num_buckets", [0, -1]),
    (lambda x: dpa.SelfComposedDpEvent(dpa.NoOpDpEvent(), x), "event.count", [-1]),
    (lambda x: dpa.PoissonSampledDpEvent(x, dpa.NoOpDpEvent()), "event.sampling_probability", [math.nan, -0.1, 1.1]),
    (lambda x: dpa.SampledWithoutReplacementDpEvent(5, x, dpa.NoOpDpEvent()), "event.sample_size", [-1, 6]),
    (lambda x: dpa.SampledWithReplacementDpEvent(x, 1, dpa.NoOpDpEvent()), "event.source_dataset_size", [0, -1]),
    (lambda x: dpa.ZCDpEvent(x, 0.0), "event.rho", [math.nan, math.inf, -1.0]),
    (lambda x: dpa.ZCDpEvent(0.5, x), "event.xi", [math.nan, math.inf, -1.0]),
    (lambda x: dp_event.RepeatAndSelectDpEvent(dpa.NoOpDpEvent(), x, 1.0), "event.mean", [math.nan, math.inf, 0.0]),
    (lambda x: dp_event.RepeatAndSelectDpEvent(dpa.NoOpDpEvent(), 1.0, x), "event.shape", [math.nan, -1.0]),
    (lambda x: dp_event.MixtureOfGaussiansDpEvent(1.0, [x], [1.0]), "event.sensitivities[0]", [math.nan, -1.0]),
    (lambda x: dp_event.MixtureOfGaussiansDpEvent(1.0, [1.0], [x]), "event.sampling_probs", [math.nan, 0.5, -1.0]),
    (lambda x: dpa.SingleEpochTreeAggregationDpEvent(1.0, x), "event.step_counts", [0, [1, 0]]),
    (
        lambda x: dp_event.TruncatedSubsampledGaussianDpEvent(5, 0.5, x, 1.0),
        "event.truncated_batch_size",
        [0, -1],
    ),
    (lambda x: dpa.ComposedDpEvent([dpa.NoOpDpEvent(), dpa.GaussianDpEvent(x)]), "event.events[1].noise", [math.nan]),
]


@pytest.mark.parametrize(
    ("make", "name", "value"),
    [(make, name, value) for make, name, values in NUMBERS_OUT_OF_RANGE for value in values],
)
def test_a_number_against_its_rule_is_refused_with_name_rule_and_value(
    make: Callable[[Any], DpEvent], name: str, value: Any
) -> None:
    with pytest.raises(ValueError, match="must") as caught:
        check_event(make(value))
    assert name in str(caught.value)
    with pytest.raises(ValueError, match="must"):
        event_to_json(make(value))


@pytest.mark.parametrize(
    ("make", "value"),
    [
        (dpa.GaussianDpEvent, "1.0"),
        (dpa.GaussianDpEvent, None),
        (dpa.GaussianDpEvent, True),
        (lambda x: dpa.SelfComposedDpEvent(dpa.NoOpDpEvent(), x), 2.0),
        (lambda x: dpa.SelfComposedDpEvent(x, 2), "gaussian"),
        (dpa.ComposedDpEvent, "ab"),
        (dpa.ComposedDpEvent, dpa.NoOpDpEvent()),
    ],
)
def test_a_value_of_the_wrong_kind_is_refused(make: Callable[[Any], DpEvent], value: Any) -> None:
    with pytest.raises(TypeError, match="must be"):
        check_event(make(value))


def test_a_number_damaged_after_construction_is_refused_too() -> None:
    event = ApproximateDpEvent(1.0, 1e-6)
    object.__setattr__(event, "epsilon", math.nan)
    with pytest.raises(ValueError, match=r"event\.epsilon must be .* got nan"):
        event_to_json(event)


def test_an_unknown_event_is_refused_by_name_and_so_is_a_subclass_of_a_known_one() -> None:
    @attr.s(frozen=True, auto_attribs=True)
    class HalvedGaussian(dpa.GaussianDpEvent):
        pass

    for event in (dpa.UnsupportedDpEvent(), HalvedGaussian(1.0), dpa.ComposedDpEvent([dpa.UnsupportedDpEvent()])):
        with pytest.raises(UnsupportedEventError, match=r"does not know (UnsupportedDpEvent|HalvedGaussian)"):
            check_event(event)


def test_the_checked_copy_is_normal_hashable_and_shares_nothing() -> None:
    parts: list[DpEvent] = [dpa.GaussianDpEvent(2), dpa.GaussianDpEvent(np.float32(2.0))]  # type: ignore[arg-type]
    event: Any = check_event(dpa.ComposedDpEvent(parts))
    parts.append(dpa.NonPrivateDpEvent())
    assert event.events == (dpa.GaussianDpEvent(2.0), dpa.GaussianDpEvent(2.0))
    assert all(type(part.noise_multiplier) is float for part in event.events)
    assert len({event, check_event(event)}) == 1
    zero = check_event(dpa.PoissonSampledDpEvent(-0.0, dpa.NoOpDpEvent()))
    text = '{"event":{"type":"no-op"},"sampling_probability":0.0,"type":"poisson-sampled"}'
    assert canonical_json(event_to_json(zero)) == text


def test_nesting_is_bounded_in_both_directions() -> None:
    event: DpEvent = dpa.NoOpDpEvent()
    for _ in range(MAX_DEPTH):
        event = dpa.SelfComposedDpEvent(event, 1)
    value: Any = event_to_json(event)
    assert event_from_json(value) == event
    with pytest.raises(ValueError, match=f"at most {MAX_DEPTH} deep"):
        check_event(dpa.SelfComposedDpEvent(event, 1))
    with pytest.raises(LedgerFileError, match=f"at most {MAX_DEPTH} deep"):
        event_from_json({"type": "self-composed", "event": value, "count": 1})


SAMPLE = {"type": "sampled-without-replacement", "source_dataset_size": 2, "sample_size": 1, "event": {"type": "no-op"}}


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"type": "telnet"}, r"event\.type must be a known event tag .* got 'telnet'"),
        ({"type": "dp_accounting.dp_event.GaussianDpEvent", "noise_multiplier": 1.0}, "known event tag"),
        ({"type": ["gaussian"], "noise_multiplier": 1.0}, "known event tag"),
        ({"noise_multiplier": 1.0}, "known event tag"),
        ({"type": "gaussian"}, "it lacks noise_multiplier"),
        ({"type": "gaussian", "noise_multiplier": 1.0, "count": 2}, "has the unknown 'count'"),
        ({"type": "gaussian", "noise_multiplier": "1.0"}, r"event\.noise_multiplier must be a real number, got '1.0'"),
        ({"type": "gaussian", "noise_multiplier": "inf"}, "must be a real number"),
        ({"type": "gaussian", "noise_multiplier": -1.0}, "got -1.0"),
        ({"type": "gaussian", "noise_multiplier": True}, "must be a real number"),
        ({"type": "gaussian", "noise_multiplier": 10**400}, "must fit a double"),
        ({"type": "self-composed", "event": {"type": "no-op"}, "count": 2.0}, r"event\.count must be an integer"),
        ({"type": "composed", "events": [{"type": "no-op"}, {"type": "x"}]}, r"event\.events\[1\]\.type"),
        ({"type": "composed", "events": {}}, r"event\.events must be a sequence"),
        ({**SAMPLE, "sample_size": 3}, r"event\.sample_size must be at most source_dataset_size \(2\), got 3"),
        ({"type": "rdp", "orders": [3.0, 2.0], "values": [0.1, 0.2]}, r"event: orders must be increasing"),
        ({"type": "dominating-pair", "upper": [0.5, 0.5], "lower": [1.0]}, r"event\.lower must be as long as upper"),
        ({"type": "dominating-pair", "upper": [0.5, 0.4], "lower": [0.5, 0.5]}, r"event\.upper must sum to 1"),
        ([], "must be an object"),
        ("gaussian", "must be an object"),
        (None, "must be an object"),
    ],
)
def test_foreign_events_are_refused(value: Any, message: str) -> None:
    with pytest.raises(LedgerFileError, match=message):
        event_from_json(value)


def test_infinity_is_a_string_where_it_is_allowed() -> None:
    event = dp_event.RepeatAndSelectDpEvent(dpa.NoOpDpEvent(), 2.0, math.inf)
    value = event_to_json(event)
    assert value["shape"] == "inf"
    assert event_from_json(value) == event
    with pytest.raises(LedgerFileError, match=r"event\.mean"):
        event_from_json({**value, "mean": "inf"})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"truncated"),
        ('{"a": 1', r"truncated.*line 1 column 8"),
        ('{"a": 1]', r"is not JSON.*line 1"),
        ('{"a": NaN}', "must be finite, got NaN"),
        ('{"a": -Infinity}', "must be finite, got -Infinity"),
        ('{"a": 1, "b": 2, "a": 3}', "the key 'a' must occur once"),
        (b"\xff\xfe{}", "is not UTF-8"),
        ("[" * 100_000, "nests too deeply"),
        ("1" * 10_000, "limit"),
    ],
)
def test_json_is_read_strictly(text: str | bytes, message: str) -> None:
    with pytest.raises(LedgerFileError, match=message):
        parse_json(text)


@given(
    event=trees,
    relation=st.sampled_from(list(Relation)),
    source=st.text(min_size=1).filter(str.strip),
    promise=st.none() | st.text(min_size=1).filter(str.strip),
    trust=st.sampled_from(Trust),
)
def test_a_claim_survives_its_text(
    event: DpEvent, relation: Relation, source: str, promise: str | None, trust: Trust
) -> None:
    claim = Claim(check_event(event), relation, source, promise, trust)
    assert claim_from_json(parse_json(canonical_json(claim_to_json(claim)))) == claim


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"relation": "replace-two"}, r"claim\.relation must be .* got 'replace-two'"),
        ({"relation": None}, r"claim\.relation"),
        ({"source": " "}, r"claim\.source must not be empty"),
        ({"source": None}, r"claim\.source must be a string"),
        ({"promise": ""}, r"claim\.promise must not be empty"),
        ({"trust": "HOPED"}, r"claim\.trust must be one of EXACT, IDEALISED, EMPIRICAL, got 'HOPED'"),
        ({"event": {"type": "gaussian", "noise_multiplier": -1.0}}, r"claim\.event\.noise_multiplier"),
        ({"extra": 1}, "has the unknown 'extra'"),
    ],
)
def test_foreign_claims_are_refused(change: dict[str, Any], message: str) -> None:
    value = claim_to_json(Claim.pure(1.0, relation="replace-one", source="by definition"))
    assert claim_from_json(value) == Claim.pure(1.0, relation="replace-one", source="by definition")
    with pytest.raises(LedgerFileError, match=message):
        claim_from_json({**value, **change})
    with pytest.raises(LedgerFileError, match="must be an object"):
        claim_from_json([])
