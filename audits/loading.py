"""Finding a user's mechanism by name, and saying in one paragraph why that failed."""

from __future__ import annotations

import difflib
import hashlib
import importlib
import importlib.util
import os
import sys
import sysconfig
import traceback
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType

_LONGEST_MESSAGE = 600
_HOUSE = Path(__file__).resolve().parent.parent
_OWN_FOLDERS = tuple(str(_HOUSE / layer) + os.sep for layer in ("accounting", "mechanisms", "learners", "audits"))
_LIBRARY_FOLDERS = tuple({sysconfig.get_path(key) + os.sep for key in ("stdlib", "platstdlib", "purelib", "platlib")})


class LoadError(ValueError):
    """A mechanism named by text cannot be had; the message is one paragraph that says why."""


def split_target(target: str) -> tuple[str, str]:
    """The place and the name of ``pkg.module:name`` or ``path/file.py:name``.

    Raises:
        LoadError: there is no colon, or nothing on one side of it.
    """
    place, colon, name = target.rpartition(":")
    if not (colon and place.strip() and name.strip()):
        raise LoadError(f"a mechanism is written pkg.module:name or path/file.py:name, got {target!r}")
    return place.strip(), name.strip()


def load(target: str, *, folder: Path) -> object:
    """The object that `target` names.

    target: ``path/file.py:name``, the path relative to `folder`, or ``pkg.module:name``, importable or lying in
    `folder`; the name may be dotted. As for a script, the folder of a file is put in front of the import path, so that
    its neighbours can be imported.

    Raises:
        LoadError: no such file, module or attribute (with the nearest name), or the import raised (with the exception
            and the user's line).
    """
    place, name = split_target(target)
    is_file = place.endswith(".py") or "/" in place or os.sep in place
    module = _load_file(place, folder) if is_file else _load_module(place, folder)
    found: object = module
    for part in name.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            here = place if found is module else f"{place}:{name}"
            raise LoadError(f"{here} has no {part!r}{hint(part, _public_names(found))}") from None
    return found


def hint(word: str, candidates: Iterable[str]) -> str:
    """`` (did you mean "...?")`` for the nearest candidate, else nothing."""
    near = difflib.get_close_matches(word, list(candidates), n=1, cutoff=0.6)
    return f' (did you mean "{near[0]}"?)' if near else ""


def one_paragraph(text: object, limit: int = _LONGEST_MESSAGE) -> str:
    """Text without line breaks and terminal control characters, at most `limit` characters."""
    flat = "".join(c if c.isprintable() else "?" for c in " ".join(str(text).split()))
    return flat if len(flat) <= limit else flat[: limit - 4].rstrip() + " ..."


def describe_exception(error: BaseException) -> str:
    """An exception in one paragraph: its type, its message, and the line of the user's code that it comes from.

    The line is the innermost one outside this product, the standard library and installed packages; failing that, the
    innermost one outside this product.
    """
    if isinstance(error, SyntaxError) and error.filename:
        where = f" ({Path(error.filename).name}, line {error.lineno})"
        return f"{type(error).__name__}: {one_paragraph(error.msg)}{where}"
    message = one_paragraph(error)
    text = f"{type(error).__name__}: {message}" if message else type(error).__name__
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not _is_ours(frame.filename)]
    users = [frame for frame in frames if not frame.filename.startswith(_LIBRARY_FOLDERS)]
    for frame in (users or frames)[-1:]:
        text += f" ({Path(frame.filename).name}, line {frame.lineno}"
        text += f", in {frame.name})" if frame.name != "<module>" else ")"
    return text


def _is_ours(filename: str) -> bool:
    return filename.startswith(("<frozen ", *_OWN_FOLDERS))


def _public_names(found: object) -> list[str]:
    return [name for name in dir(found) if not name.startswith("_")]


def _put_first(folder: Path) -> None:
    text = str(folder)
    if text not in sys.path:
        sys.path.insert(0, text)


def _load_file(place: str, folder: Path) -> ModuleType:
    path = (folder / place).resolve()
    if not path.is_file():
        siblings = [sibling.name for sibling in path.parent.glob("*.py")] if path.parent.is_dir() else []
        raise LoadError(f"there is no file {path}{hint(path.name, siblings)}")
    # The name carries the path: two users' files called noisy.py are two modules.
    name = f"_audited_{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:12]}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise LoadError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    _put_first(path.parent)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        del sys.modules[name]
        raise LoadError(f"importing {place} raised {describe_exception(error)}") from error
    return module


def _load_module(place: str, folder: Path) -> ModuleType:
    _put_first(folder.resolve())
    try:
        return importlib.import_module(place)
    except KeyboardInterrupt:
        raise
    except ModuleNotFoundError as error:
        if error.name is not None and (place == error.name or place.startswith(error.name + ".")):
            where = f"there is no module {error.name!r}, installed or in {folder.resolve()}"
            raise LoadError(f"{where}; a file is written path/file.py:name") from error
        raise LoadError(f"importing {place} raised {describe_exception(error)}") from error
    except BaseException as error:
        raise LoadError(f"importing {place} raised {describe_exception(error)}") from error
