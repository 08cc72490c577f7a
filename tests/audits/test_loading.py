"""Finding a mechanism by name, and what is said when that fails."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from audits.loading import LoadError, describe_exception, load, one_paragraph, split_target


@pytest.fixture(autouse=True)
def _own_import_state(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "modules", dict(sys.modules))


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_a_file_beside_the_claims(tmp_path: Path) -> None:
    write(tmp_path, "helper_of_mine.py", "VALUE = 3")
    write(tmp_path, "mine.py", "import helper_of_mine\nclass A:\n    value = helper_of_mine.VALUE\n")
    assert load("mine.py:A.value", folder=tmp_path) == 3
    assert load(f"{tmp_path}/mine.py:A", folder=Path("/")) is load("./mine.py:A", folder=tmp_path)


def test_files_of_the_same_name_are_different_modules(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        write(tmp_path / folder, "noisy.py", f"NAME = {folder!r}")
    assert [load(f"{folder}/noisy.py:NAME", folder=tmp_path) for folder in "ab"] == ["a", "b"]


def test_a_module_installed_or_in_the_folder(tmp_path: Path) -> None:
    write(tmp_path, "package_of_mine/__init__.py", "")
    write(tmp_path, "package_of_mine/inner.py", "def f(dataset): return 1")
    assert callable(load("package_of_mine.inner:f", folder=tmp_path))
    assert load("math:pi", folder=tmp_path) == pytest.approx(3.14159, abs=1e-5)


@pytest.mark.parametrize("target", ["noisy.py", "noisy.py:", ":f", "", " : "])
def test_a_target_needs_a_place_and_a_name(target: str) -> None:
    with pytest.raises(LoadError, match=r"written pkg\.module:name or path/file\.py:name"):
        split_target(target)


@pytest.mark.parametrize(
    ("text", "target", "said"),
    [
        ("", "nosiy.py:f", r'there is no file .*nosiy\.py \(did you mean "noisy\.py"\?\)'),
        ("def noisy_count(d): ...", "noisy.py:noisy_cuont", r'no \'noisy_cuont\' \(did you mean "noisy_count"\?\)'),
        ("\n\n1 / 0\n", "noisy.py:f", r"ZeroDivisionError: division by zero \(noisy\.py, line 3\)"),
        ("\ndef f(:\n", "noisy.py:f", r"SyntaxError: .* \(noisy\.py, line 2\)"),
        ("import no_such_module", "noisy.py:f", r"ModuleNotFoundError: No module named 'no_such_module' .*line 1"),
        ("raise SystemExit(1)", "noisy.py:f", r"SystemExit: 1 \(noisy\.py, line 1\)"),
        ("def g():\n    raise KeyError\ng()", "noisy.py:f", r"KeyError \(noisy\.py, line 2, in g\)"),
        ("import json\njson.loads('{')", "noisy.py:f", r"JSONDecodeError: .* \(noisy\.py, line 2\)"),
        ("", "no_such_package.sub:f", r"there is no module 'no_such_package'.*path/file\.py:name"),
        ("import also_missing", "noisy:f", r"importing noisy raised ModuleNotFoundError.*noisy\.py, line 1"),
        ("x = 1", "noisy:f", "noisy has no 'f'"),
    ],
)
def test_every_failure_is_one_paragraph_with_the_users_line(tmp_path: Path, text: str, target: str, said: str) -> None:
    write(tmp_path, "noisy.py", text)
    with pytest.raises(LoadError, match=said) as caught:
        load(target, folder=tmp_path)
    assert "\n" not in str(caught.value)
    assert "Traceback" not in str(caught.value)


def test_a_failed_import_is_tried_again(tmp_path: Path) -> None:
    path = write(tmp_path, "noisy.py", "1 / 0")
    with pytest.raises(LoadError):
        load("noisy.py:f", folder=tmp_path)
    path.write_text("f = 12", encoding="utf-8")
    assert load("noisy.py:f", folder=tmp_path) == 12


def test_an_exception_without_a_place_of_the_users_keeps_its_name() -> None:
    assert describe_exception(ValueError("a\nb")) == "ValueError: a b"
    assert describe_exception(KeyError()) == "KeyError"


def test_a_paragraph_has_no_breaks_and_an_end() -> None:
    assert one_paragraph("a\n\n  b\tc") == "a b c"
    assert one_paragraph("x" * 700) == "x" * 596 + " ..."
