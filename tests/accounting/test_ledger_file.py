"""Ledger files: what comes back, what damage is noticed and how it is named, and that saving is all or nothing."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dp_accounting as dpa
import pytest

from accounting import ApproximateDpEvent, BudgetExceededError, Claim, Ledger, LedgerFileError, Relation, Trust
from tests.support.ledgers import REPLACE, TENTH, state


def example() -> Ledger:
    ledger = Ledger(relation=REPLACE, budget=("1/3", 1e-6))
    ledger.dataset("records", 100)
    ledger.partition("records", {"a": 40, "b": 50})
    ledger.charge(
        "a", ApproximateDpEvent(0.1, 1e-9), label="first", parameters={"m": 3, "q": 0.5, "note": "é\n", "x": None}
    )
    claim = Claim.bounded_range(0.125, relation=REPLACE, source="Lemma 2", promise="sorted", trust=Trust.EXACT)
    ledger.charge({"a": claim, "b": TENTH}, label="joint", count=1, release="run 1")
    return ledger


@pytest.fixture
def path(tmp_path: Path) -> Path:
    target = tmp_path / "ledger.json"
    example().save(target)
    return target


def test_a_ledger_comes_back_and_goes_on(path: Path) -> None:
    ledger, twin = example(), Ledger.load(path)
    assert state(twin) == state(ledger)
    for delta in (0.0, 1e-9, 1e-6):
        assert twin.epsilon(delta) == ledger.epsilon(delta)
    with pytest.raises(BudgetExceededError):
        twin.charge("a", ApproximateDpEvent(0.3), label="over")
    with pytest.raises(ValueError, match="already paid for"):
        twin.charge("a", ApproximateDpEvent(0.001), label="x", release="run 1")
    twin.charge("b", ApproximateDpEvent(0.001), label="x")
    twin.save(path)
    assert len(Ledger.load(path)) == 4


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("budget", [None, (0.1, 0.0), ("1e-3", "1e-30")])
def test_an_empty_ledger_comes_back(tmp_path: Path, relation: Relation, budget: Any) -> None:
    ledger = Ledger(relation=relation, budget=budget)
    ledger.save(tmp_path / "ledger.json")
    assert state(Ledger.load(tmp_path / "ledger.json")) == state(ledger)


def test_the_file_is_plain_json_without_bare_infinities(path: Path) -> None:
    def refuse(text: str) -> None:
        raise AssertionError(text)

    document = json.loads(path.read_text(encoding="utf-8"), parse_constant=refuse)
    assert (document["format"], document["schema"], document["relation"]) == ("dpledger-ledger", 1, "replace-one")
    assert document["budget"] == {"epsilon": "1/3", "delta": "0.000001"}
    assert [entry["kind"] for entry in document["entries"]] == ["dataset", "partition", "charge", "charge"]
    assert document["entries"][2]["costs"][0]["event"] == {"type": "approximate", "epsilon": 0.1, "delta": 1e-09}
    assert document["head"] == {"entries": 4, "hash": document["entries"][3]["hash"]}
    assert example().head == Ledger.load(path).head == (4, document["head"]["hash"])


def test_the_chain_can_be_checked_by_hand(path: Path) -> None:
    """The format as documented, recomputed here from the file alone."""
    import hashlib

    def digest(text: str) -> str:
        return hashlib.sha256(text.encode()).hexdigest()

    def canonical(value: object) -> str:
        return json.dumps(value, sort_keys=True, separators=(",", ":"))

    document = json.loads(path.read_text(encoding="utf-8"))
    previous = digest(canonical({key: document[key] for key in ("format", "schema", "relation", "budget", "filter")}))
    assert document["start"] == previous
    for entry in document["entries"]:
        stated = entry.pop("hash")
        previous = digest(previous + "\n" + canonical(entry))
        assert stated == previous


def test_every_truncation_is_noticed(path: Path) -> None:
    whole = path.read_bytes().rstrip()
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        with pytest.raises(LedgerFileError, match=r"ledger\.json: ") as caught:
            Ledger.load(path)
        assert "truncated" in str(caught.value) or "JSON" in str(caught.value), size


def test_every_changed_character_is_noticed(path: Path) -> None:
    """Any one character of the text replaced by another: refused, or the file still says the same."""
    whole = path.read_text(encoding="utf-8")
    ledger = state(example())
    for place, character in enumerate(whole):
        path.write_text(whole[:place] + ("7" if character != "7" else "8") + whole[place + 1 :], encoding="utf-8")
        try:
            found = state(Ledger.load(path))
        except LedgerFileError as error:
            assert str(error).startswith(f"{path}: ")  # noqa: PT017
        else:
            assert found == ledger, whole[max(0, place - 20) : place + 20]


Document = dict[str, Any]


def _swap(document: Document) -> None:
    entries = document["entries"]
    entries[2], entries[3] = entries[3], entries[2]


def _double(document: Document) -> None:
    document["entries"].append(document["entries"][3])


def _rehash(document: Document) -> None:
    """What someone would do who knows the format: the chain is then right, and the rules have to hold by themselves."""
    from accounting.chain import entry_hash, start_hash

    previous = start_hash({key: document[key] for key in ("format", "schema", "relation", "budget", "filter")})
    document["start"] = previous
    for entry in document["entries"]:
        previous = entry["hash"] = entry_hash(previous, {key: value for key, value in entry.items() if key != "hash"})
    document["head"] = {"entries": len(document["entries"]), "hash": previous}


def change(*path: Any, to: Any, rehash: bool = False) -> Callable[[Document], None]:
    def apply(document: Document) -> None:
        place: Any = document
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = to
        if rehash:
            _rehash(document)

    return apply


def drop(*path: Any, rehash: bool = False) -> Callable[[Document], None]:
    def apply(document: Document) -> None:
        place: Any = document
        for key in path[:-1]:
            place = place[key]
        del place[path[-1]]
        if rehash:
            _rehash(document)

    return apply


EVENT = ("entries", 2, "costs", 0, "event")

DAMAGE: list[tuple[Callable[[Document], None], str]] = [
    (change("format", to="something"), "format must be 'dpledger-ledger', got 'something'"),
    (drop("format"), "this is not a ledger"),
    (change("schema", to=2), "schema must be at most 1, which this version reads, got the newer 2"),
    (change("schema", to="1"), "schema must be an integer"),
    (change("relation", to="add-remove"), "the header .* was edited"),
    (change("relation", to="both"), "relation must be"),
    (change("budget", "epsilon", to="2"), "the header .* was edited"),
    (change("budget", "epsilon", to=2), "budget.epsilon must be a string"),
    (change("budget", "epsilon", to="nan"), "budget epsilon must be a number"),
    (drop("budget", "delta"), "budget must have exactly the keys epsilon, delta: it lacks delta"),
    (change("budget", to=None), "the header .* was edited"),
    (change("extra", to=1), "the ledger must have exactly the keys .* has the unknown 'extra'"),
    (drop("head"), "it lacks head"),
    (change("entries", to={}), "entries must be a list"),
    (change("entries", 2, to=3), "entry 3: must be an object with a hash"),
    (drop("entries", 2, "hash"), "entry 3: must be an object with a hash"),
    (change(*EVENT, "epsilon", to=0.01), "entry 3: was edited"),
    (change("entries", 1, "blocks", 0, "size", to=41), "entry 2: was edited"),
    (change("entries", 3, "label", to="innocent"), "entry 4: was edited"),
    (drop("entries", 0), "entry 1: was edited, or an entry before it was removed"),
    (drop("entries", 2), "entry 3: was edited, or an entry before it was removed"),
    (drop("entries", 3), "holds 3 entries and its head says 4: entries 4 to 4 are missing"),
    (_swap, "entry 3: was edited"),
    (_double, "entry 5: was edited"),
    (change("head", "entries", to=3), "holds 4 entries and its head says 3: entries were added"),
    (change("head", "hash", to="0" * 64), "head.hash must be the hash of entry 4"),
    # The chain recomputed: the rules of each entry hold all the same, and name it.
    (
        change(*EVENT, to={"type": "os.system"}, rehash=True),
        r"entry 3: costs\[0\]\.event\.type must be a known event tag",
    ),
    (change(*EVENT, "epsilon", to=-1.0, rehash=True), r"entry 3: costs\[0\]\.event\.epsilon must be .* got -1\.0"),
    (drop(*EVENT, "delta", rehash=True), r"entry 3: costs\[0\]\.event must have .* lacks delta"),
    (change("entries", 2, "count", to=0, rehash=True), "entry 3: count must be at least 1, got 0"),
    (change("entries", 2, "count", to=1.5, rehash=True), "entry 3: count must be an integer"),
    (change("entries", 2, "label", to="", rehash=True), "entry 3: label must not be empty"),
    (change("entries", 2, "costs", to=[], rehash=True), "entry 3: costs must name at least one dataset"),
    (change("entries", 2, "costs", 0, "dataset", to="z", rehash=True), "entry 3: dataset must be one of"),
    (change("entries", 2, "costs", 0, "trust", to="FULL", rehash=True), r"entry 3: costs\[0\]\.trust must be one of"),
    (change("entries", 2, "parameters", to=[], rehash=True), "entry 3: parameters must be an object"),
    (change("entries", 2, "parameters", to={"m": [1]}, rehash=True), r"entry 3: parameters\['m'\] must be a number"),
    (change("entries", 2, "kind", to="refund", rehash=True), "entry 3: kind must be dataset, partition or charge"),
    (change("entries", 2, "number", to=4, rehash=True), "entry 3: number must be 3"),
    (drop("entries", 2, "release", rehash=True), "entry 3: the entry must have .* lacks release"),
    (
        change("entries", 2, "release", to="run 1", rehash=True),
        "entry 4: release 'run 1' is already paid for by entry 3",
    ),
    (
        change("entries", 1, "blocks", 0, "size", to=90, rehash=True),
        "entry 2: .* at most its 100 records together, got 140",
    ),
    (change("entries", 1, "parent", to="z", rehash=True), "entry 2: dataset must be one of"),
    (change("entries", 0, "size", to=-1, rehash=True), "entry 1: size must be at least 0"),
]


@pytest.mark.parametrize(("damage", "message"), DAMAGE)
def test_damage_is_refused_and_named(path: Path, damage: Callable[[Document], None], message: str) -> None:
    document = json.loads(path.read_text(encoding="utf-8"))
    damage(document)
    path.write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises(LedgerFileError, match=message) as caught:
        Ledger.load(path)
    assert str(caught.value).startswith(f"{path}: ")


@pytest.mark.parametrize(
    "text", ["", "[]", "3", "null", '"ledger"', "{}", "epsilon,delta\n1,2\n", '{"a": NaN}', "\x00"]
)
def test_foreign_files_are_refused(tmp_path: Path, text: str) -> None:
    target = tmp_path / "other.json"
    target.write_text(text, encoding="utf-8")
    with pytest.raises(LedgerFileError, match=r"other\.json: "):
        Ledger.load(target)
    with pytest.raises(LedgerFileError, match=r"other\.json: "):
        example().save(target)
    assert target.read_text(encoding="utf-8") == text


def test_a_missing_file_is_an_error_of_the_system(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Ledger.load(tmp_path / "none.json")
    with pytest.raises(OSError, match="none"):
        example().save(tmp_path / "none" / "ledger.json")


def test_charges_are_never_written_over(path: Path) -> None:
    before = path.read_bytes()
    other = Ledger(relation=REPLACE, budget=("1/3", 1e-6))
    with pytest.raises(LedgerFileError, match=r"holds 4 entries that are not the first 4 of this ledger.*lose charges"):
        other.save(path)
    other.charge("records", TENTH, label="x", count=1)
    with pytest.raises(LedgerFileError, match="lose charges"):
        other.save(path)
    with pytest.raises(LedgerFileError, match="lose charges"):
        Ledger(relation=REPLACE).save(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_failed_save_leaves_what_was_there(path: Path, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    before = path.read_bytes()
    ledger = Ledger.load(path)
    ledger.charge("b", ApproximateDpEvent(0.01), label="x")

    def fail(*args: object) -> None:
        raise OSError("no space left")

    owner: object = os if step == "fsync" else Path
    monkeypatch.setattr(owner, step, fail)
    with pytest.raises(OSError, match="no space left"):
        ledger.save(path)
    monkeypatch.undo()
    assert path.read_bytes() == before
    assert [item.name for item in path.parent.iterdir()] == ["ledger.json"]
    ledger.save(path)
    assert len(Ledger.load(path)) == 4


def test_permissions_and_links_are_kept(path: Path) -> None:
    path.chmod(0o640)
    link = path.with_name("link.json")
    link.symlink_to(path)
    ledger = Ledger.load(link)
    ledger.charge("b", ApproximateDpEvent(0.01), label="x")
    ledger.save(link)
    assert link.is_symlink()
    assert path.stat().st_mode & 0o777 == 0o640
    assert len(Ledger.load(path)) == 4


def test_infinite_and_unlimited_things_travel(tmp_path: Path) -> None:
    ledger = Ledger(relation=REPLACE)
    ledger.charge("records", dpa.NonPrivateDpEvent(), label="raw", count=10**30)
    ledger.save(tmp_path / "ledger.json")
    assert Ledger.load(tmp_path / "ledger.json").epsilon(0.5) == math.inf
