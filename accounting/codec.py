"""Events and claims as JSON, and JSON read strictly.

Floats are written by ``repr`` and read back to the same double; infinity is the string "inf" where a field allows it,
and a bare NaN or Infinity is refused. Nothing is imported by name: tags come from the table in `event_table`. Whatever
is wrong with input ends as one `LedgerFileError` that says where it is and which rule it breaks.
"""

from __future__ import annotations

import json
import reprlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

from dp_accounting import DpEvent

from accounting._checks import check_relation, check_text, relation_name
from accounting.claims import Claim, Trust
from accounting.errors import LedgerFileError
from accounting.event_table import check_event, check_keys, dump_event, read_event

_CLAIM_KEYS = ("event", "relation", "source", "promise", "trust")


@contextmanager
def reading(where: str) -> Iterator[None]:
    """Turn what a check says of input into a `LedgerFileError` that begins with `where` (a file, an entry)."""
    try:
        yield
    except LedgerFileError as error:
        raise LedgerFileError(f"{where}: {error}") from error.__cause__
    except (TypeError, ValueError) as error:
        raise LedgerFileError(f"{where}: {error}") from error


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(
            f"the key {reprlib.repr(twice)} must occur once in an object, got it {keys.count(twice)} times"
        )
    return value


def _no_constant(text: str) -> NoReturn:
    raise ValueError(f"a number must be finite, got {text}")


def parse_json(text: str | bytes) -> Any:
    """JSON (UTF-8 if bytes), read strictly: no NaN, no bare infinities, no key twice in an object.

    Raises:
        LedgerFileError: anything else; the message says which rule, and the line and column where there is one.
    """
    try:
        if isinstance(text, bytes):
            text = text.decode("utf-8")
        return json.loads(text, object_pairs_hook=_no_duplicates, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        what = "ends too early (truncated?)" if error.pos >= len(text.rstrip()) else "is not JSON"
        raise LedgerFileError(f"{what}: {error.msg} at line {error.lineno} column {error.colno}") from error
    except UnicodeDecodeError as error:
        raise LedgerFileError(f"is not UTF-8 text: {error}") from error
    except RecursionError as error:
        raise LedgerFileError("nests too deeply") from error
    except ValueError as error:
        raise LedgerFileError(str(error)) from error


def canonical_json(value: object) -> str:
    """The one text of a JSON value: keys sorted, no spaces, ASCII, floats by ``repr``.

    Raises:
        ValueError: the value holds NaN or an infinity.
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def event_to_json(event: DpEvent) -> dict[str, object]:
    """``{"type": tag, field: value, ...}``; every number is checked first.

    Raises:
        TypeError, ValueError, UnsupportedEventError: as `check_event`.
    """
    return dump_event(check_event(event))


def event_from_json(value: object, where: str = "event") -> DpEvent:
    """The event that `event_to_json` wrote, normalised and checked.

    Raises:
        LedgerFileError: an unknown tag, a missing or extra key, a number against its rule; names the place and the
            rule.
    """
    try:
        return read_event(value, where)
    except (TypeError, ValueError) as error:
        raise LedgerFileError(str(error)) from error


def claim_to_json(claim: Claim) -> dict[str, object]:
    """A claim as JSON: its event, relation, source, promise and trust."""
    return {
        "event": event_to_json(claim.event),
        "relation": relation_name(claim.relation),
        "source": claim.source,
        "promise": claim.promise,
        "trust": claim.trust.name,
    }


def claim_from_json(value: object, where: str = "claim") -> Claim:
    """The claim that `claim_to_json` wrote.

    Raises:
        LedgerFileError: as `event_from_json`, and for a relation or trust that does not exist, or an empty text.
    """
    try:
        fields = check_keys(value, _CLAIM_KEYS, where)
        return Claim(
            event=read_event(fields["event"], f"{where}.event"),
            relation=check_relation(f"{where}.relation", fields["relation"]),
            source=check_text(f"{where}.source", fields["source"]),
            promise=optional_text(f"{where}.promise", fields["promise"]),
            trust=read_trust(f"{where}.trust", fields["trust"]),
        )
    except (TypeError, ValueError) as error:
        raise LedgerFileError(str(error)) from error


def optional_text(name: str, value: object) -> str | None:
    """None, or a string that says something."""
    return None if value is None else check_text(name, value)


def read_trust(name: str, value: object) -> Trust:
    """A `Trust` by its name in files."""
    if not isinstance(value, str) or value not in Trust.__members__:
        raise ValueError(f"{name} must be one of {', '.join(Trust.__members__)}, got {reprlib.repr(value)}")
    return Trust[value]


def check_list(name: str, value: object) -> Sequence[Any]:
    """A JSON array."""
    if not isinstance(value, list):
        raise TypeError(f"{name} must be a list, got {reprlib.repr(value)}")
    return value
