"""`shengji bench`: what this machine does, held against the figures that the design promises."""

import json
import os
import time
from typing import Final

# gRPC would print about forks and ended connections, no news when processes are started and killed.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
os.environ.setdefault("GRPC_VERBOSITY", "ERROR")

import click
from rich.console import Console
from rich.table import Table

from services.bench.figures import Bar, Figure, shown, spread
from services.bench.lines import NAMES, measure
from services.bench.machine import machine
from services.bench.scale import Scale

_MET = {True: "yes", False: "no", None: ""}


_HELP: Final = """Measure this machine: about ten minutes, best with nothing else running.

\b
follow   checks of a follow a second, beside the least that such a call can cost
worst    the dearest check that a search among four-deck positions finds
deals    whole deals a second inside the core
fold     events a second from stored bytes to a table's state
matching a look at 10,000 tickets that wait for opponents
play     a Play over gRPC to its durable record and back, beside a bare handler that only records
fanout   a Play to the last of four watchers
cold     a table that is in nobody's memory until it can be played on
memory   what an open table takes in memory
ledger   deals settled a second, beside a bare insert of the same rows, and how late

Each figure is a median with the least and greatest of its runs, held against a bar; some against a floor
measured beside it in the same run, and then the ratio counts. These are measurements, not tests: the
exit status is 0 when they ran. Data is kept in $TMPDIR and removed; it should be on a real disk, since
every record is synced. services/bench/README.md says how each figure is measured.
"""
"""Not a docstring, since click's mark for lines that stay as they are is no plain text."""


@click.command(help=_HELP, short_help="Measure this machine against the figures that are promised.")
@click.option(
    "--only",
    "chosen",
    multiple=True,
    type=click.Choice(NAMES),
    help="Run this one alone; may be given several times.",
)
@click.option("--quick", is_flag=True, help="A tenth of the sizes: about a minute, and coarser figures.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document in place of the table.")
def bench(chosen: tuple[str, ...], quick: bool, as_json: bool) -> None:
    """Measure, and print what was found."""
    console = Console(stderr=True, highlight=False)
    started = time.perf_counter()

    def say(text: str) -> None:
        console.print(f"  {time.perf_counter() - started:4.0f} s  {text}", style="dim")

    found: list[Figure] = []
    here = machine()
    for name in [name for name in NAMES if name in chosen or not chosen]:
        say(name)
        found += measure(name, Scale(quick, say))
    if as_json:
        figures = [figure.to_json() for figure in found]
        click.echo(json.dumps({"machine": here, "quick": quick, "figures": figures}, indent=1))
        return
    out = Console(highlight=False)
    out.print("; ".join(f"{name}: {value}" for name, value in here.items()), soft_wrap=True)
    out.print(_table(found, quick))


def _table(found: list[Figure], quick: bool) -> Table:
    """One row a figure, its note below it."""
    table = Table(title="quick run, a tenth of the sizes" if quick else None, title_justify="left")
    for heading in ("", "what", "measured", "bar", "floor", "ratio", "met"):
        table.add_column(heading, overflow="fold")
    line = ""
    for figure in found:
        if figure.line != line:
            table.add_section()
        note = f"\n[dim]{figure.note}[/dim]" if figure.note else ""
        table.add_row(
            figure.line if figure.line != line else "",
            figure.what + note,
            f"{spread(figure.values)} {figure.unit}",
            _bar(figure.bar),
            spread(figure.floor) if figure.floor else "",
            "" if figure.ratio is None else f"{figure.ratio:.2f}",
            _MET[figure.met],
        )
        line = figure.line
    return table


def _bar(bar: Bar | None) -> str:
    if bar is None:
        return ""
    sign = "≥" if bar.sense == ">=" else "≤"
    return f"{sign} {bar.value:g} × floor" if bar.on == "ratio" else f"{sign} {shown(bar.value)}"
