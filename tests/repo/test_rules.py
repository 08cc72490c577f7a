"""The repository keeps its own rules, and every rule is seen to fail on a small tree that breaks it."""

from __future__ import annotations

import importlib.metadata
import subprocess
from pathlib import Path

import pytest

from tests.repo import rules

ROOT = Path(__file__).resolve().parents[2]


def plant(root: Path, files: dict[str, str]) -> Path:
    """Write a tree of small files below `root`."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root


def test_imports_point_down_to_faces() -> None:
    assert rules.wrong_imports(ROOT) == []


@pytest.mark.parametrize(
    "statement",
    [
        "import audits",
        "from audits import audit",
        "from audits.exact import audit_exact",
        "import learners.planning",
        "from accounting.claims import Claim",
        "import accounting.claims",
        "from accounting import claims",
        "from tests.support import oracle",
        "def late():\n    from audits import audit",
    ],
)
def test_a_wrong_import_is_seen(tmp_path: Path, statement: str) -> None:
    files = {
        "accounting/__init__.py": "__all__ = ['Claim']",
        "accounting/claims.py": "",
        "mechanisms/base.py": statement,
    }
    [message] = rules.wrong_imports(plant(tmp_path, files))
    assert message.startswith("mechanisms/base.py:")


@pytest.mark.parametrize(
    "statement",
    [
        "import accounting",
        "from accounting import Claim, report",
        "from mechanisms.x import y",
        "from . import x",
        "import json",
    ],
)
def test_a_right_import_is_left_alone(tmp_path: Path, statement: str) -> None:
    files = {
        "accounting/__init__.py": "__all__ = ['Claim', 'report']",
        "accounting/report.py": "",  # a file whose name the face also exports, as a function
        "mechanisms/base.py": statement,
    }
    assert rules.wrong_imports(plant(tmp_path, files)) == []


def test_every_folder_is_a_package() -> None:
    assert rules.folders_without_init(ROOT) == []


def test_a_folder_without_init_is_seen(tmp_path: Path) -> None:
    plant(tmp_path, {"tests/accounting/test_claims.py": "", "tests/__init__.py": "", "audits/sub/deep/x.py": ""})
    assert rules.folders_without_init(tmp_path) == ["audits", "audits/sub", "audits/sub/deep", "tests/accounting"]


def test_every_layer_is_marked_as_typed() -> None:
    assert rules.without_type_marker(ROOT) == []


def test_a_layer_without_type_marker_is_seen(tmp_path: Path) -> None:
    plant(tmp_path, {"accounting/py.typed": "", "learners/py.typed": ""})
    assert rules.without_type_marker(tmp_path) == ["mechanisms", "audits"]


def test_no_file_is_too_long() -> None:
    assert rules.long_files(ROOT) == []


def test_a_long_file_is_seen(tmp_path: Path) -> None:
    plant(
        tmp_path, {"audits/a.py": "x = 1\n" * rules.LONGEST_FILE, "audits/b.py": "x = 1\n" * (rules.LONGEST_FILE + 1)}
    )
    assert rules.long_files(tmp_path) == [f"audits/b.py: {rules.LONGEST_FILE + 1} lines"]


def test_the_top_level_is_what_was_agreed() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout: nothing tells the project's files from others")
    listing = ["git", "-c", "safe.directory=*", "ls-files", "-z"]
    files = subprocess.run(listing, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\0")
    names = {name.partition("/")[0] for name in files if name}
    assert names >= rules.TOP_LEVEL
    assert rules.misplaced(names) == []


def test_a_misplaced_name_is_seen() -> None:
    assert rules.misplaced([*rules.TOP_LEVEL, ".gitignore", "utils", "setup.py"]) == ["setup.py", "utils"]


def test_no_other_distribution_owns_our_names() -> None:
    assert rules.foreign_owners(importlib.metadata.packages_distributions()) == []


def test_a_foreign_owner_is_seen() -> None:
    owners = {
        "accounting": ["dpledger", "accounting"],
        "learners": ["learners"],
        "audits": ["dpledger"],
        "numpy": ["numpy"],
    }
    assert rules.foreign_owners(owners) == ["accounting: accounting", "learners: learners"]


def test_every_test_is_collected_and_run() -> None:
    assert rules.uncollected(ROOT) == []
    assert rules.deselecting(ROOT) == []


def test_an_uncollected_test_is_seen(tmp_path: Path) -> None:
    body = "def test_a(): ...\nclass TestB: ...\nclass Contract:\n    def test_c(self): ...\ndef helper(): ...\n"
    plant(tmp_path, {"tests/x/claims.py": body, "tests/x/test_claims.py": body})
    assert rules.uncollected(tmp_path) == ["tests/x/claims.py:1: test_a", "tests/x/claims.py:2: TestB"]


GOOD = {
    "Makefile": 'test:\n\t$(PYTEST) -m "not slow"\n\t.venv/bin/python -m pytest\n',
    ".ci/run": "python -m build\npython -m pytest -n 2 --pyargs tests\n",
    "pyproject.toml": (
        '[tool.pytest.ini_options]\naddopts = ["--strict-config"]\n'
        'testpaths = ["accounting", "audits", "learners", "mechanisms", "tests"]\n'
    ),
    "tests/conftest.py": "",
}


def test_a_setting_that_runs_every_test_is_left_alone(tmp_path: Path) -> None:
    assert rules.deselecting(plant(tmp_path, GOOD)) == []


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("Makefile", '-m "not slow"', "-m 'not slow and not dull'"),
        ("Makefile", "-m pytest", "-m pytest -k claims"),
        (".ci/run", "-n 2", "-k 'not slow'"),
        (".ci/run", "-n 2", '-m "not slow or dull"'),
        (".ci/run", "-n 2", "--ignore=tests/audits"),
        (".ci/run", "-n 2", "--deselect tests/audits/test_a.py::test_b"),
        ("pyproject.toml", "--strict-config", "-kclaims"),
        ("pyproject.toml", "[tool.pytest.ini_options]", '[tool.pytest.ini_options]\nnorecursedirs = ["audits"]'),
        ("pyproject.toml", '"tests"', '"tests/audits"'),
        ("tests/conftest.py", "", "collect_ignore = ['test_a.py']"),
        ("tests/conftest.py", "", "import pytest\nopendp = pytest.importorskip('opendp')"),
    ],
)
def test_a_setting_that_leaves_tests_out_is_seen(tmp_path: Path, name: str, old: str, new: str) -> None:
    assert len(rules.deselecting(plant(tmp_path, {**GOOD, name: GOOD[name].replace(old, new)}))) == 1
