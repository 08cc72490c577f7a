"""Claims files: what is read, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from accounting import Relation
from audits.claims_file import BrokenClaim, ClaimsFileError, ClaimSpec, read_claims
from mechanisms import AddOrRemoveOne, ExplicitPairs, ReplaceOne

GOOD = """
name = "count"
mechanism = "noisy.py:f"
epsilon = 1
relation = "add-remove"
neighbours = { values = [0, 1], max_size = 4 }
"""


def read(tmp_path: Path, text: str) -> tuple[ClaimSpec | BrokenClaim, ...]:
    path = tmp_path / "claims.toml"
    path.write_text(text, encoding="utf-8")
    return read_claims(path).claims


def read_one(tmp_path: Path, claim: str) -> ClaimSpec | BrokenClaim:
    (found,) = read(tmp_path, "schema = 1\n[[claims]]\n" + claim)
    return found


def test_the_least_that_a_claim_says(tmp_path: Path) -> None:
    assert read_one(tmp_path, GOOD) == ClaimSpec(
        name="count",
        mechanism="noisy.py:f",
        folder=tmp_path,
        parameters={},
        epsilon=1.0,
        delta=0.0,
        domain=AddOrRemoveOne((0, 1), 4),
        source="claims.toml",
    )


def test_all_that_a_claim_may_say(tmp_path: Path) -> None:
    path = tmp_path / "claims.toml"
    path.write_text(
        """
        schema = 1
        confidence = 0.99
        max_runs = 1000
        timeout = 5
        [[claims]]
        name = "points"
        mechanism = "package.module:name"
        parameters = { scale = 1.0, labels = ["a", "b"] }
        epsilon = 0.5
        delta = 1e-6
        relation = "replace-one"
        neighbours = { values = [[0, 1], [1, 1]], size = 2 }
        promise = "realizable"
        source = "Lemma 3"
        confidence = 0.999
        max_runs = 10
        timeout = 0.5
        method = "sequential"
        """,
        encoding="utf-8",
    )
    file = read_claims(path)
    assert (file.confidence, file.max_runs, file.timeout) == (0.99, 1000, 5.0)
    (claim,) = file.claims
    assert isinstance(claim, ClaimSpec)
    assert claim.domain == ReplaceOne(((0, 1), (1, 1)), 2)
    assert (claim.confidence, claim.max_runs, claim.timeout, claim.method) == (0.999, 10, 0.5, "sequential")
    assert claim.parameters == {"scale": 1.0, "labels": ["a", "b"]}
    assert claim.claim.relation is Relation.REPLACE_ONE
    assert claim.claim.statement() == "(0.5, 1e-06)-DP under replace-one, promised: realizable"


def test_pairs_instead_of_values(tmp_path: Path) -> None:
    claim = read_one(tmp_path, GOOD.replace("values = [0, 1], max_size = 4", "pairs = [[[0, 1], [0, 1, 1]]]"))
    assert isinstance(claim, ClaimSpec)
    assert claim.domain == ExplicitPairs([((0, 1), (0, 1, 1))], Relation.ADD_OR_REMOVE_ONE)


@pytest.mark.parametrize(
    ("find", "replace", "said"),
    [
        ("epsilon", "epsilom", "unknown key 'epsilom' (did you mean \"epsilon\"?)"),
        ("epsilon = 1", "", "the key 'epsilon' is missing"),
        ("epsilon = 1", "epsilon = -1", "epsilon must be in [0, inf], got -1"),
        ("epsilon = 1", "epsilon = nan", "epsilon must be in [0, inf] and finite, got nan"),
        ("epsilon = 1", "epsilon = true", "epsilon must be a real number, got True"),
        ("epsilon = 1", 'epsilon = "1"', "epsilon must be a real number, got '1'"),
        ("epsilon = 1", "epsilon = 1\ndelta = 2", "delta must be in [0, 1], got 2"),
        ("epsilon = 1", "epsilon = 1\nconfidence = 1", "confidence must be in (0, 1), got 1"),
        ("epsilon = 1", "epsilon = 1\nmax_runs = 0", "max_runs must be at least 1, got 0"),
        ("epsilon = 1", "epsilon = 1\nmax_runs = 1.5", "max_runs must be an integer, got 1.5"),
        ("epsilon = 1", "epsilon = 1\ntimeout = 0", "timeout must be in (0, inf], got 0"),
        ("epsilon = 1", 'epsilon = 1\nmethod = "exakt"', "got 'exakt' (did you mean \"exact\"?)"),
        ("epsilon = 1", "epsilon = 1\nparameters = 3", "parameters must be a table"),
        ("epsilon = 1", 'epsilon = 1\nparameters = { "a b" = 1 }', "parameters must be a table"),
        ("epsilon = 1", 'epsilon = 1\npromise = ""', "promise must not be empty"),
        (
            "add-remove",
            "add-remov",
            "must be replace-one or add-remove, got 'add-remov' (did you mean \"add-remove\"?)",
        ),
        ("noisy.py:f", "noisy.py", "written pkg.module:name or path/file.py:name"),
        ("max_size = 4", "size = 4", "neighbours.size does not fit relation add-remove: give max_size"),
        ("max_size = 4", "max_size = 0", "neighbours.max_size must be at least 1, got 0"),
        (
            "max_size = 4",
            "max_sise = 4",
            'max_sise is not one of values, max_size, size, pairs (did you mean "max_size"?)',
        ),
        ("[0, 1]", "[]", "neighbours.values must hold at least one record"),
        ("[0, 1]", "[1, 1]", "neighbours.values must be distinct, got 1 twice"),
        ("values = [0, 1], max_size = 4", "pairs = [[[0], [1]]]", "must be neighbours under add-remove"),
        ("{ values = [0, 1], max_size = 4 }", "3", "neighbours must be a table"),
    ],
)
def test_a_wrong_key_or_value_is_named(tmp_path: Path, find: str, replace: str, said: str) -> None:
    claim = read_one(tmp_path, GOOD.replace(find, replace, 1))
    assert isinstance(claim, BrokenClaim)
    assert claim.name == "count"
    (problem,) = claim.problems
    assert said in problem


def test_every_problem_of_a_claim_is_told_and_the_others_are_read(tmp_path: Path) -> None:
    wrong = GOOD.replace("epsilon = 1", "epsilon = -1\ndelta = 2\nsorce = 1")
    claims = read(tmp_path, f"schema = 1\n[[claims]]{wrong}\n[[claims]]{GOOD.replace('count', 'other')}")
    broken, good = claims
    assert isinstance(good, ClaimSpec)
    assert isinstance(broken, BrokenClaim)
    assert [problem.split()[0] for problem in broken.problems] == ["unknown", "epsilon", "delta"]


def test_a_name_belongs_to_one_claim(tmp_path: Path) -> None:
    first, second = read(tmp_path, f"schema = 1\n[[claims]]{GOOD}\n[[claims]]{GOOD}")
    assert isinstance(first, ClaimSpec)
    assert second == BrokenClaim("claim 2", "noisy.py:f", ("the name 'count' is already that of claim 1",))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("schema = 1\nclaims = 3", "claims must be one or more tables, each headed [[claims]]"),
        ("schema = 1", "the key 'claims' is missing"),
        ("[[claims]]", "the key 'schema' is missing"),
        ("schema = 2\n[[claims]]", "schema must be 1, the only one this version reads, got 2"),
        ("schema = true\n[[claims]]", "schema must be 1"),
        ("schema = 1\nconfidense = 0.9\n[[claims]]", "unknown key 'confidense' (did you mean \"confidence\"?)"),
        ("schema = 1\nconfidence = 0\n[[claims]]", "confidence must be in (0, 1), got 0"),
        ("schema = 1\nschema = 1", "is not valid TOML"),
        ("schema = ", "is not valid TOML"),
        ("sceema = 2\nconfidence = 7\n[[claims]]", "confidence must be in (0, 1), got 7"),
    ],
)
def test_a_file_that_cannot_be_used_at_all(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(ClaimsFileError) as caught:
        read(tmp_path, text)
    assert said in str(caught.value)
    assert str(tmp_path / "claims.toml") in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_file_names_its_neighbour(tmp_path: Path) -> None:
    (tmp_path / "claims.toml").touch()
    with pytest.raises(ClaimsFileError, match=r'no claims file .*cliams\.toml \(did you mean "claims\.toml"\?\)'):
        read_claims(tmp_path / "cliams.toml")
    with pytest.raises(ClaimsFileError, match="there is no claims file"):
        read_claims(tmp_path / "nowhere" / "claims.toml")


def test_a_file_that_is_not_text(tmp_path: Path) -> None:
    path = tmp_path / "claims.toml"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(ClaimsFileError, match="cannot be read"):
        read_claims(path)
    with pytest.raises(ClaimsFileError, match="cannot be read"):
        read_claims(tmp_path)
