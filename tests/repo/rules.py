"""The repository's rules as functions of a tree: each returns what breaks the rule, as texts; none is an empty list.

They take the root so that the tests can show, on a small bad tree, that each of them can fail.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

LAYERS = ("accounting", "mechanisms", "learners", "audits")  # each may import those before it
LONGEST_FILE = 450
TOP_LEVEL = {*LAYERS, "tests", "pyproject.toml", "README.md", "LICENSE", "Makefile"}  # and names that start with a dot


def python_files(root: Path, folders: Sequence[str] = (*LAYERS, "tests")) -> Iterator[Path]:
    """Every Python file in these folders of the tree."""
    for folder in folders:
        yield from sorted((root / folder).rglob("*.py"))


def exported(face: Path) -> set[str]:
    """The names in a face's ``__all__``."""
    for node in ast.parse(face.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return set(ast.literal_eval(node.value))
    return set()


def wrong_imports(root: Path) -> list[str]:
    """Imports that point up, reach past another layer's face, or lead out of the four packages into tests."""
    found = []
    for path in python_files(root, LAYERS):
        layer = path.relative_to(root).parts[0]
        below = LAYERS[: LAYERS.index(layer)]
        for line, module, names in absolute_imports(ast.parse(path.read_text(encoding="utf-8"))):
            top = module.partition(".")[0]
            where = f"{path.relative_to(root)}:{line}"
            if top == layer or top not in (*LAYERS, "tests"):
                continue
            if top not in below:
                found.append(f"{where}: {layer} may not import {module}")
            elif module != top or any(is_file_of_layer(root / top, name) for name in names):
                found.append(f"{where}: {layer} may import {top} from its face only, not its files")
    return found


def is_file_of_layer(layer: Path, name: str) -> bool:
    """Whether importing `name` from the layer gives a file of it, not what its face exports by that name."""
    is_file = (layer / f"{name}.py").exists() or (layer / name).is_dir()
    return is_file and name not in exported(layer / "__init__.py")


def absolute_imports(tree: ast.Module) -> Iterator[tuple[int, str, tuple[str, ...]]]:
    """(line, module, names) of each absolute import, wherever in the file; a relative one stays in its own layer."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name, ()
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.lineno, node.module, tuple(alias.name for alias in node.names)


def folders_without_init(root: Path) -> list[str]:
    """Folders with Python files, and their parents below the root, that have no ``__init__.py``."""
    folders = {
        parent
        for path in python_files(root)
        for parent in path.relative_to(root).parents
        if parent != Path() and not (root / parent / "__init__.py").exists()
    }
    return sorted(map(str, folders))


def without_type_marker(root: Path) -> list[str]:
    """Layers without the ``py.typed`` that tells type checkers to read their annotations."""
    return [layer for layer in LAYERS if not (root / layer / "py.typed").is_file()]


def long_files(root: Path) -> list[str]:
    """Python files of more than `LONGEST_FILE` lines."""
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in python_files(root)}
    return [f"{path.relative_to(root)}: {n} lines" for path, n in lengths.items() if n > LONGEST_FILE]


def misplaced(names: Iterable[str]) -> list[str]:
    """Names that do not belong at the top level of the repository."""
    return sorted(name for name in names if not name.startswith(".") and name not in TOP_LEVEL)


def foreign_owners(owners: Mapping[str, Sequence[str]]) -> list[str]:
    """Layers that another installed distribution provides too.

    owners: what ``importlib.metadata.packages_distributions()`` returns. The four names are common
    words, and pip lets one distribution overwrite another's files without a word.
    """
    return [f"{layer}: {owner}" for layer in LAYERS for owner in owners.get(layer, []) if owner != "dpledger"]


def make_targets(makefile: str) -> set[str]:
    """The targets that a user may type."""
    return set(re.findall(r"^([a-z][a-z-]*):", makefile, flags=re.MULTILINE))


def code_blocks(markdown: str, language: str) -> list[str]:
    """The fenced code in this language."""
    return re.findall(rf"^```{language}\n(.*?)^```", markdown, flags=re.MULTILINE | re.DOTALL)


def commands(markdown: str, program: str) -> list[str]:
    """The command lines of `program` in the shell code of a Markdown text, without their comments."""
    lines = [line.partition("#")[0].strip() for block in code_blocks(markdown, "sh") for line in block.splitlines()]
    return [line for line in lines if line.startswith(f"{program} ")]


def unknown_targets(readme: str, makefile: str) -> list[str]:
    """``make`` commands in the README whose target the Makefile lacks."""
    known = make_targets(makefile)
    prose = re.findall(r"`(make [^`\n]+)`", readme)
    words = [word for command in [*commands(readme, "make"), *prose] for word in command.split()[1:] if "=" not in word]
    return [word for word in words if word not in known]


def uncollected(root: Path) -> list[str]:
    """Tests that pytest does not find, because their file's name does not start with ``test_``."""
    return [
        f"{path.relative_to(root)}:{node.lineno}: {node.name}"
        for path in python_files(root, ("tests",))
        if not path.name.startswith("test_")
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if (isinstance(node, ast.FunctionDef) and node.name.startswith("test_"))
        or (isinstance(node, ast.ClassDef) and node.name.startswith("Test"))
    ]


def deselecting(root: Path) -> list[str]:
    """Settings that leave tests out. One may: ``-m "not slow"`` in `make test` and in continuous integration."""
    selecting = re.compile(r"""(?<!\S)(-k|--ignore|--deselect|-m\s*["'](?!not slow["']))""")
    found = [
        f"{name}:{number}: {line.strip()}"
        for name in ("Makefile", ".ci/run")
        for number, line in enumerate((root / name).read_text(encoding="utf-8").splitlines(), start=1)
        if selecting.search(line)
    ]
    options = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["pytest"]["ini_options"]
    found += [f"pyproject.toml: addopts has {text}" for text in options["addopts"] if selecting.search(text)]
    narrowing = {"collect_ignore", "norecursedirs", "python_classes", "python_files", "python_functions"}
    found += [f"pyproject.toml: {key}" for key in sorted(narrowing & options.keys())]
    found += [
        f"pyproject.toml: testpaths lacks {name}" for name in sorted({*LAYERS, "tests"} - {*options["testpaths"]})
    ]
    for path in python_files(root, ("tests",)):
        hooks = ("collect_ignore", "items[:]", "pytest_deselected", "pytest_ignore_collect")
        words = ("importorskip", *(hooks if path.name == "conftest.py" else ()))
        if path.parent != root / "tests" / "repo":
            found += [f"{path.relative_to(root)}: {word}" for word in words if word in path.read_text(encoding="utf-8")]
    return found
