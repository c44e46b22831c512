"""What the ledger says of a demo's match: who won how many chips, and that its books add up."""

import asyncio
import time
from pathlib import Path
from typing import Any, Final, NamedTuple

import grpc
from rich.console import Console

from services.cli.audit import open_database
from services.cli.reading import archive_of, reader_at
from services.cli.render import SEAT_NAMES
from services.ledger.audit import Report, audit
from services.ledger.snapshot import load
from services.pb.ledger.v1.ledger_service_pb2 import Deal, GetMatchRequest, GetMatchResponse
from services.pb.ledger.v1.ledger_service_pb2_grpc import LedgerServiceStub
from services.shell.keys import signing_key
from services.shell.tokens import sign
from services.shell.trust import PLAYER_ISSUER

_ASKED_BY: Final = "ply_demo"
_POSTED_S: Final = 10.0
"""How long the ledger may take; it takes some ten milliseconds."""
_LOOK_S: Final = 0.05


class Booked(NamedTuple):
    """A match in the ledger."""

    stake: int
    rated: bool
    deals: tuple[Deal, ...]
    """Those that were shown."""
    audit: Report

    @property
    def sound(self) -> bool:
        """Whether every deal moves as much as it takes, and the books are what the logs say."""
        return not self.audit.differences and all(sum(deal.won) == 0 for deal in self.deals)


async def booked_match(
    address: str, data: Path, nats: str, table_id: str, *, version: int, deals: int, ended: bool
) -> Booked | None:
    """Ask the ledger for a match and audit its database; None when it does not post it in time.

    Args:
        address: the ledger's.
        data: the folder of its database, archive and of the key that lets somebody ask.
        nats: for a reader of the log.
        table_id: the match's table.
        version: up to which version the match was shown.
        deals: how many deals had been scored by then.
        ended: whether it had ended by then.
    """
    token = sign(signing_key(data, PLAYER_ISSUER), PLAYER_ISSUER, _ASKED_BY, scope="ledger admin")
    async with grpc.aio.insecure_channel(address) as channel:
        stub: Any = LedgerServiceStub(channel)
        give_up = time.monotonic() + _POSTED_S
        while True:
            told = await _told(stub, token, table_id)
            shown = tuple(deal for deal in told.deals if deal.version <= version)
            if len(shown) == deals and (told.match.ended_at_ms or not ended):
                break
            if time.monotonic() > give_up:
                return None
            await asyncio.sleep(_LOOK_S)
    archive, database = archive_of(data), open_database(data, None)
    try:
        # The database first: the logs then hold at least all that it knows.
        found = await database.read(load)
    finally:
        await database.close()
    async with reader_at(nats, archive) as reader:
        report = await audit(found, reader, archive)
    return Booked(told.match.stake, told.match.rated, shown, report)


async def _told(stub: Any, token: str, table_id: str) -> GetMatchResponse:
    """The match as the ledger knows it now; nothing while it does not."""
    metadata = (("authorization", f"Bearer {token}"),)
    try:
        answer: GetMatchResponse = await stub.GetMatch(GetMatchRequest(table_id=table_id), metadata=metadata)
    except grpc.aio.AioRpcError as error:
        if error.code() not in {grpc.StatusCode.NOT_FOUND, grpc.StatusCode.UNAVAILABLE}:
            raise
        return GetMatchResponse()
    return answer


def print_booked(console: Console, booked: Booked | None) -> None:
    """Say it, for people: the same text for the same match."""
    if booked is None:
        console.print("  ledger: DID NOT POST the match in time", style="bold red")
        return
    won = [sum(deal.won[seat] for deal in booked.deals) for seat in range(len(SEAT_NAMES))]
    chips = ", ".join(f"{name} {amount:+}" for name, amount in zip(SEAT_NAMES, won, strict=True))
    console.print(f"  chips at a stake of {booked.stake}: {chips}")
    console.print(f"  rated: {'yes' if booked.rated else 'no (bots)'}")
    if booked.sound:
        console.print(f"  ledger: {len(booked.deals)} deals settled, sums to zero, nothing differs")
        return
    differences = [str(difference) for difference in booked.audit.differences]
    for difference in differences or ["a deal that does not sum to zero"]:
        console.print(f"  ledger: DIFFERS: {difference}", style="bold red", markup=False)
