"""Terminal output: tables that hold together from 80 columns up, and paragraphs for what a table cannot say."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich import box
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from accounting import relation_name
from audits.loading import one_paragraph
from audits.presenting import RowText, headline, how_to_repeat, row_text, shared_notes
from audits.verification import VerificationRun
from mechanisms import Registration

WIDE = 110
"""Columns from which the tables have room for everything."""

STYLES = {
    "PROVED": "bold green",
    "CONSISTENT": "green",
    "REFUTED": "bold red",
    "INCONCLUSIVE": "yellow",
    "ERROR": "bold yellow",
}


def show_run(console: Console, run: VerificationRun) -> None:
    """Print a verification run: the table, then each refutation in a paragraph, the notes and the totals.

    Errors are not here but on standard error (`show_errors`).
    """
    rows = [row_text(row) for row in run.verdicts]
    console.print(verdict_table(rows, width=console.width))
    console.print(Text("Numbers are epsilon in nats, followed by delta where it is not 0.", style="dim"))
    console.print()
    for word, title in (("REFUTED", "Refuted"), ("INCONCLUSIVE", "Inconclusive")):
        paragraphs = [_paragraph(row) for row in rows if row.word == word]
        if paragraphs:
            console.print(_section(title, paragraphs, STYLES[word]))
    early = [Text.assemble((f"{row.name}: ", "bold"), f"{row.stopped} ({row.effort})") for row in rows if row.stopped]
    if early:
        console.print(_section("Stopped early", early, STYLES["INCONCLUSIVE"]))
    notes = [_note(note, names, len(rows)) for note, names in shared_notes(run)]
    if notes:
        console.print(_section("Notes", notes, "bold"))
    console.print(Text(headline(run), style="bold"))
    console.print(Text(run.error_budget))
    console.print(Text(how_to_repeat(run)))


def show_errors(console: Console, run: VerificationRun) -> None:
    """Print what kept claims from being checked, a paragraph each."""
    for row in run.errors:
        console.print(Text(one_paragraph(row.error, 1200), style=STYLES["ERROR"]))


def verdict_table(rows: Sequence[RowText], *, width: int) -> Table:
    """One row a claim; the relation stands under its name where there is no room for a column."""
    wide = width >= WIDE
    with_paper = any(row.paper is not None for row in rows)
    with_power = any(row.catches != "-" for row in rows)
    table = Table(
        box=box.SIMPLE_HEAD, pad_edge=False, expand=False, show_edge=False, padding=(0, 2 if wide else 1, 0, 0)
    )
    table.add_column("Claim", overflow="fold", min_width=32 if wide else 24 if width >= 80 else 16)
    if wide:
        table.add_column("Relation", no_wrap=True)
    if with_paper:
        table.add_column("Paper", justify="right", overflow="fold")
    table.add_column("Claimed", justify="right", overflow="fold")
    table.add_column("Found", justify="right", overflow="fold")
    if wide:
        table.add_column("Ratio", justify="right", no_wrap=True)
    if with_power:
        table.add_column("Would\ncatch", justify="right", overflow="fold")
    table.add_column("Verdict", no_wrap=True)
    if wide:
        table.add_column("How", overflow="fold")
    for row in rows:
        table.add_row(*_cells(row, wide=wide, with_paper=with_paper, with_power=with_power))
    return table


def show_mechanisms(console: Console, registrations: Sequence[Registration]) -> None:
    """Print the registered mechanisms, a block each."""
    for registration in registrations:
        console.print(Text(registration.name, style="bold"))
        grid = Table.grid(padding=(0, 2, 0, 2))
        grid.add_column(no_wrap=True, style="dim")
        grid.add_column()
        for label, text in (
            ("what", registration.summary),
            ("claim", registration.guarantee),
            ("relation", relation_name(registration.relation)),
            ("promise", registration.promise or "none: all inputs"),
            ("source", registration.source),
        ):
            grid.add_row(label, Text(text))
        console.print(grid)
        console.print()


def _cells(row: RowText, *, wide: bool, with_paper: bool, with_power: bool) -> Iterator[RenderableType]:
    name = Text(row.name)
    if not wide and row.relation != "-":
        name.append(f"\n{row.relation}", style="dim")
    if row.promise:
        name.append(f"\npromised: {row.promise}", style="dim")
    yield name
    if wide:
        yield row.relation
    if with_paper:
        yield row.paper or "-"
    yield row.claimed
    yield row.found
    if wide:
        yield row.ratio
    if with_power:
        yield row.catches
    yield Text(row.word, style=STYLES[row.word])
    if wide:
        yield Text(row.effort)


def _section(title: str, paragraphs: Sequence[Text], style: str) -> RenderableType:
    return Group(Text(title, style=style), *(Padding(paragraph, (0, 0, 0, 2)) for paragraph in paragraphs), Text(""))


def _paragraph(row: RowText) -> Text:
    return Text.assemble((f"{row.name}: ", "bold"), one_paragraph(row.said.removeprefix(f"{row.word}: "), 1200))


def _note(note: str, names: Sequence[str], total: int) -> Text:
    if total == 1:
        return Text(note)
    about = "all claims" if len(names) == total else ", ".join(names[:6]) + (", ..." if len(names) > 6 else "")
    return Text.assemble((f"{about}: ", "dim"), note)
