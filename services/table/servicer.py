"""The calls of TableService: request → command → tables → response, and nothing else."""

import asyncio
import time
from collections.abc import Mapping
from typing import Final

from services.game.commands import OpenTable
from services.game.ids import is_service
from services.game.waits import COMMIT_CAP
from services.game.wire import cards_to_wire, rules_to_wire
from services.pb.event.v1.event_pb2 import SPECTATORS_LINK, Cards, Difficulty, Seat
from services.pb.table.v1 import table_service_pb2 as pb
from services.rules.presets import PRESET_NAMES
from services.rules.reasons import Reason
from services.shell.errors import RefusedError
from services.shell.limits import Buckets
from services.shell.rpc import Call, Write
from services.table import requests
from services.table.audience import audience_of
from services.table.config import BURST_S, TableConfig
from services.table.hot import HotTable
from services.table.legal import legal_plays
from services.table.requests import Asked, bad
from services.table.rule_sheets import language_of, sheet_to_wire
from services.table.secrets import Place, TableSecrets, spectator_code
from services.table.tables import Receipt, Tables
from services.table.watch import Watches

VIEW_WAIT_S: Final = 5.0
"""How long GetView waits for a version."""
_FIRST_PAUSE_S: Final = 0.01
_LONGEST_PAUSE_S: Final = 0.25
PLAYS_LISTED: Final = 64
PLAYS_MOST: Final = 256


class TableServicer:
    """TableService; ``shell.rpc.Guard`` stands before it and answers what it raises."""

    def __init__(
        self, tables: Tables, watches: Watches, insecure_entropy: str, *, services_found: bool = False
    ) -> None:
        """Serve tables.

        Args:
            tables: they.
            watches: those who watch them.
            insecure_entropy: empty for real play.
            services_found: only services found tables.
        """
        self._tables = tables
        self._watches = watches
        self._insecure_entropy = insecure_entropy
        self._services_found = services_found
        self._keyring = tables.cache.deps.keyring

    # ------------------------------------------------------------------------------------------ commands

    async def create_table(self, request: pb.CreateTableRequest, call: Call) -> pb.CreateTableResponse:
        """See the proto."""
        if self._services_found and not is_service(call.player_id):
            raise RefusedError(Reason.NOT_YOURS)
        asked = requests.create_table(request, call.player_id, self._insecure_entropy)
        command = asked.command
        if not isinstance(command, OpenTable):
            raise TypeError("create_table makes OpenTable")
        receipt, sequence = await self._tables.found(command, asked.command_id, asked.body)
        linked = command.spectators == SPECTATORS_LINK
        seats = [
            Seat(
                seat=number,
                player_id=plan.player_id,
                difficulty=Difficulty.ValueType(plan.difficulty),
            )
            for number, plan in enumerate(command.seats)
        ]
        return pb.CreateTableResponse(
            table_id=asked.table_id,
            receipt=_receipt(receipt),
            spectator_code=spectator_code(self._keyring, asked.table_id) if linked else "",
            seats=seats,
            resume=TableSecrets(self._keyring, asked.table_id).resume_token(Place(1, 0, sequence)),
        )

    async def sit(self, request: pb.SitRequest, call: Call) -> pb.SitResponse:
        """See the proto."""
        return pb.SitResponse(receipt=await self._do(requests.sit(request, call.player_id), call))

    async def leave(self, request: pb.LeaveRequest, call: Call) -> pb.LeaveResponse:
        """See the proto."""
        return pb.LeaveResponse(receipt=await self._do(requests.leave(request, call.player_id), call))

    async def ready(self, request: pb.ReadyRequest, call: Call) -> pb.ReadyResponse:
        """See the proto."""
        return pb.ReadyResponse(receipt=await self._do(requests.ready(request, call.player_id), call))

    async def declare(self, request: pb.DeclareRequest, call: Call) -> pb.DeclareResponse:
        """See the proto."""
        return pb.DeclareResponse(receipt=await self._do(requests.declare(request, call.player_id), call))

    async def pass_(self, request: pb.PassRequest, call: Call) -> pb.PassResponse:
        """See the proto."""
        return pb.PassResponse(receipt=await self._do(requests.pass_(request, call.player_id), call))

    async def call_mutiny(self, request: pb.CallMutinyRequest, call: Call) -> pb.CallMutinyResponse:
        """See the proto."""
        asked = requests.call_mutiny(request, call.player_id)
        return pb.CallMutinyResponse(receipt=await self._do(asked, call))

    async def bury(self, request: pb.BuryRequest, call: Call) -> pb.BuryResponse:
        """See the proto."""
        return pb.BuryResponse(receipt=await self._do(requests.bury(request, call.player_id), call))

    async def counter(self, request: pb.CounterRequest, call: Call) -> pb.CounterResponse:
        """See the proto."""
        return pb.CounterResponse(receipt=await self._do(requests.counter(request, call.player_id), call))

    async def play(self, request: pb.PlayRequest, call: Call) -> pb.PlayResponse:
        """See the proto."""
        return pb.PlayResponse(receipt=await self._do(requests.play(request, call.player_id), call))

    async def set_auto_play(self, request: pb.SetAutoPlayRequest, call: Call) -> pb.SetAutoPlayResponse:
        """See the proto."""
        asked = requests.set_auto_play(request, call.player_id)
        return pb.SetAutoPlayResponse(receipt=await self._do(asked, call))

    async def end_unfunded(self, request: pb.EndUnfundedRequest, call: Call) -> pb.EndUnfundedResponse:
        """See the proto."""
        asked = requests.end_unfunded(request, call.player_id)
        return pb.EndUnfundedResponse(receipt=await self._do(asked, call))

    async def _do(self, asked: Asked, call: Call) -> pb.Receipt:
        receipt = await self._tables.execute(
            asked.table_id, asked.command, asked.command_id, asked.body, asked.seen, call.started
        )
        return _receipt(receipt)

    # ----------------------------------------------------------------------------------------- questions

    async def get_view(self, request: pb.GetViewRequest, call: Call) -> pb.GetViewResponse:
        """See the proto."""
        hot = await self._tables.cache.open(request.table_id)
        if request.min_version > COMMIT_CAP:
            raise bad("min_version", "is more than a table can have")
        audience_of(hot.state, call.player_id, request.spectator_code, self._keyring)
        await self._reach(hot, request.min_version)
        return pb.GetViewResponse(view=await self._watches.view(hot, call.player_id, request.spectator_code))

    async def _reach(self, hot: HotTable, version: int) -> None:
        """Wait until a table is at a version; one that nobody watches here is read from the log."""
        if hot.state.version >= version > 0 or (hot.timeline is not None and not version):
            return
        give_up, pause = time.monotonic() + VIEW_WAIT_S, _FIRST_PAUSE_S
        while True:
            await self._tables.cache.refresh(hot)
            if hot.state.version >= version:
                return
            if time.monotonic() + pause > give_up:
                raise RefusedError(Reason.UNAVAILABLE)
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_S)

    async def legal_plays(self, request: pb.LegalPlaysRequest, call: Call) -> pb.LegalPlaysResponse:
        """See the proto."""
        if request.cap > PLAYS_MOST:
            raise bad("cap", f"must be from 1 to {PLAYS_MOST}")
        hot = await self._tables.cache.open(request.table_id)
        listing = legal_plays(hot.state, call.player_id, request.cap or PLAYS_LISTED)
        if not listing.plays:
            # Another replica may have served the table meanwhile: only the newest state has nothing to play.
            await self._tables.cache.refresh(hot)
            listing = legal_plays(hot.state, call.player_id, request.cap or PLAYS_LISTED)
        if hot.state.seat_of(call.player_id) is None:
            raise RefusedError(Reason.NOT_SEATED)
        return pb.LegalPlaysResponse(
            version=hot.state.version,
            plays=[Cards(cards=cards_to_wire(play)) for play in listing.plays],
            complete=listing.complete,
        )

    async def get_rules(self, request: pb.GetRulesRequest, call: Call) -> pb.GetRulesResponse:
        """See the proto; rules are no secret."""
        language = language_of(request.language, call.accept_language)
        if request.overrides and (request.table_id or not request.preset):
            raise bad("overrides", "go with a preset")
        if request.table_id:
            chosen = (await self._tables.cache.open(request.table_id)).state.rules
        elif request.preset:
            chosen = requests.rules(request.preset, request.overrides)
        else:
            return pb.GetRulesResponse(presets=PRESET_NAMES)
        return pb.GetRulesResponse(
            rules=rules_to_wire(chosen), presets=PRESET_NAMES, sheet=sheet_to_wire(chosen, language)
        )

    async def renew_watch(self, request: pb.RenewWatchRequest, call: Call) -> pb.RenewWatchResponse:
        """See the proto."""
        await self._watches.renewals.renew(call.player_id, call.expires_at)
        return pb.RenewWatchResponse(expires_at_ms=call.expires_at * 1000)

    async def watch(self, request: pb.WatchRequest, call: Call, write: Write) -> None:
        """See the proto."""
        await self._watches.watch(request, call, write)


def _receipt(receipt: Receipt) -> pb.Receipt:
    return pb.Receipt(version=receipt.version, repeated=receipt.repeated)


def limits(config: TableConfig) -> Mapping[str, Buckets]:
    """The buckets of every method: one kind of limit for each kind of call."""
    rates = {
        "CreateTable": config.create_rate,
        "GetView": config.view_rate,
        "LegalPlays": config.view_rate,
        "GetRules": config.view_rate,
        "Watch": config.watch_rate,
        "RenewWatch": config.watch_rate,
    }
    methods = pb.DESCRIPTOR.services_by_name["TableService"].methods_by_name
    return {
        name: Buckets(rate, max(1.0, rate * BURST_S))
        for name in methods
        for rate in (rates.get(name, config.command_rate),)
    }
