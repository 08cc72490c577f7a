"""What a ledger is, before anything is entered: the part of a file that its hash chain starts from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from accounting._checks import check_int, check_relation, check_text, relation_name
from accounting.book import Book
from accounting.decimals import Budget, decimal_text
from accounting.event_table import check_keys
from accounting.filters import filter_from_json

FORMAT = "dpledger-ledger"
SCHEMA = 1

HEADER = ("format", "schema", "relation", "budget", "filter")


def header_of(book: Book) -> dict[str, Any]:
    """What the ledger is: the part of the file that the chain starts from."""
    budget = book.budget and {"epsilon": decimal_text(book.budget.epsilon), "delta": decimal_text(book.budget.delta)}
    return {
        "format": FORMAT,
        "schema": SCHEMA,
        "relation": relation_name(book.relation),
        "budget": budget,
        "filter": None if book.filter is None else book.filter.to_json(),
    }


def book_of(header: Mapping[str, Any]) -> Book:
    """The empty book that a header describes.

    Raises:
        TypeError, ValueError: another format, a newer schema, or a field against its rule.
    """
    if header.get("format") != FORMAT:
        raise ValueError(f"format must be {FORMAT!r}, got {header.get('format')!r}: this is not a ledger")
    schema = check_int("schema", header.get("schema"), lo=1)
    if schema > SCHEMA:
        raise ValueError(f"schema must be at most {SCHEMA}, which this version reads, got the newer {schema}")
    relation = check_relation("relation", header.get("relation"))
    budget, rule = header.get("budget"), header.get("filter")
    if budget is not None:
        fields = check_keys(budget, ("epsilon", "delta"), "budget")
        budget = Budget.of(tuple(check_text(f"budget.{name}", fields[name]) for name in ("epsilon", "delta")))
    return Book(relation, budget, None if rule is None else filter_from_json(rule))
