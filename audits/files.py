"""Output files: whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def prepare(path: Path) -> None:
    """Make sure that a file can be written at `path`, before the work whose result it will hold.

    Raises:
        OSError: its folder cannot be made or written, or `path` is a folder.
    """
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder, not a file")
    path.parent.mkdir(parents=True, exist_ok=True)
    if not os.access(path.parent, os.W_OK):
        raise PermissionError(f"the folder {path.parent} cannot be written")


def write_text(path: Path, text: str) -> None:
    """Write `text` to `path`: by a temporary file in the same folder that takes the name once it is complete."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", text=False)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        mask = os.umask(0)
        os.umask(mask)
        Path(temporary).chmod(0o666 & ~mask)  # as any other new file; mkstemp keeps others out
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
