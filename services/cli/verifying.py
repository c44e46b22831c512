"""Verifying stored tables and saying what was found."""

from rich.console import Console

from services.cli.reading import LogReader, reader_at
from services.game.verify import DealState, Report, verify


async def verify_table(url: str, table_id: str, version: int) -> Report:
    """Verify one table's log up to a version, as the NATS at a URL stores it."""
    async with reader_at(url) as reader:
        return verify(table_id, (await reader.commits(table_id))[:version])


async def verify_in(reader: LogReader, table_id: str, head: bytes | None = None) -> Report:
    """Verify one table's log, against the hash of its newest commit where that is known."""
    return verify(table_id, await reader.commits(table_id), head)


def print_report(console: Console, table_id: str, report: Report, *, head: bool = True) -> None:
    """Say what was found, for people; the head is never the same twice, since it covers the time of day."""
    if report.problem is not None:
        console.print(
            f"  {table_id}: NOT SOUND at version {report.problem.version}: {report.problem.what}",
            style="bold red",
        )
        return
    deals = list(report.deals.values())
    counts = ", ".join(
        f"{deals.count(state)} {word}"
        for state, word in (
            (DealState.VERIFIED, "verified"),
            (DealState.OPEN, "open (still sealed)"),
            (DealState.LOST, "never to be checked (master key lost)"),
        )
        if state in deals
    )
    state = "closed" if report.closed else "finished" if report.finished else "unfinished"
    console.print(f"  {table_id}: sound, {state}")
    console.print(f"  {report.versions} commits; deals: {counts or 'none'}")
    if report.insecure:
        console.print("  Its cards followed from a text that anybody may know (insecure entropy).")
    if head:
        console.print(f"  head {report.head.hex()}")
