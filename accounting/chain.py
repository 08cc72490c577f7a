"""The hash chain of a ledger: every entry carries the SHA-256 of its own text and of the hash before it.

What it shows: an entry edited, removed, inserted or moved by anything that did not also recompute every hash after it,
and (by the count and hash at the head) entries cut off at the end. What it cannot show: a file rewritten as a whole by
someone who recomputes the chain, or an old copy put back; against those, note the head's hash somewhere else.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from accounting.codec import canonical_json


def start_hash(header: Mapping[str, object]) -> str:
    """The hash that the first entry builds on: of what the ledger is (format, schema, relation, budget)."""
    return _sha256(canonical_json(dict(header)))


def entry_hash(previous: str, entry: Mapping[str, object]) -> str:
    """The hash of an entry after `previous`."""
    return _sha256(previous + "\n" + canonical_json(dict(entry)))


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("ascii")).hexdigest()
