"""Table services in the test's own process on a real nats-server, and scripted players who call them."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
from google.rpc.error_details_pb2 import ErrorInfo, LocalizedMessage, RetryInfo
from google.rpc.status_pb2 import Status

from services.pb.event.v1.event_pb2 import Pace, RuleOption, Seat
from services.pb.table.v1 import table_service_pb2 as pb
from services.pb.table.v1 import view_pb2
from services.pb.table.v1.reason_pb2 import Owed
from services.pb.table.v1.table_service_pb2_grpc import TableServiceStub
from services.shell.broker import Broker
from services.shell.config import load
from services.shell.errors import DETAILS_KEY
from services.shell.keys import signing_key
from services.shell.logs import Log
from services.shell.tokens import sign
from services.table.app import TableService
from services.table.config import TableConfig
from support.broker import PATIENCE_S

PLAYERS = ("ann", "bob", "cid", "dan")
AT_ONCE = Pace(
    draw_ms=0,
    declare_ms=0,
    mutiny_ms=600_000,
    bury_ms=600_000,
    turn_ms=600_000,
    next_deal_ms=600_000,
    away_turns=3,
)
"""No cards are waited for, and nobody's time runs out."""


class Replica:
    """A running table service and a channel to it."""

    def __init__(self, service: TableService, channel: grpc.aio.Channel, data: Path) -> None:
        self.service = service
        self.channel = channel
        self.stub: Any = TableServiceStub(channel)
        self.data = data

    @property
    def address(self) -> str:
        """Where it listens."""
        assert self.service.running is not None
        return f"127.0.0.1:{self.service.running.port}"

    def value(self, name: str, **labels: str) -> float:
        """A metric's present value."""
        return self.service.registry.get_sample_value(name, labels) or 0.0


@asynccontextmanager
async def replica(
    nats: str, data: Path, log: Log | None = None, master_keys: str = "", **settings: object
) -> AsyncIterator[Replica]:
    """A table service for the length of a block."""
    flags = {
        "data": data,
        "nats": nats,
        "listen": "127.0.0.1:0",
        "metrics": "",
        "command_rate": 0.0,
        "view_rate": 0.0,
        "watch_rate": 0.0,
    }
    environ = {"SHENGJI_MASTER_KEYS": master_keys} if master_keys else {}
    config = load(TableConfig, {**flags, "create_rate": 0.0, **settings}, environ)
    broker = await Broker.connect(nats, "table", within_s=PATIENCE_S)
    try:
        service = TableService(config, broker, log or Log("table", "error"))
        running = await service.start()
        options = (("grpc.use_local_subchannel_pool", 1),)
        async with grpc.aio.insecure_channel(f"127.0.0.1:{running.port}", options=options) as channel:
            try:
                yield Replica(service, channel, data)
            finally:
                await service.stop(wait_s=0, grace_s=0.5)
    finally:
        await broker.close()


def token(data: Path, player: str, issuer: str = "", **how: Any) -> str:
    """A good token of a player, a bot or a service."""
    issuer = issuer or {"bot": "bots", "svc": "services"}.get(player.partition(":")[0], "local")
    return sign(signing_key(data, issuer), issuer, player, **how)


def metadata(data: Path, player: str, *more: tuple[str, str]) -> tuple[tuple[str, str], ...]:
    """A call's metadata for a player."""
    return (("authorization", f"Bearer {token(data, player)}"), *more)


class Refused(Exception):
    """A call that was refused.

    Attributes:
        code, reason: the status code, and ErrorInfo's reason.
        info, text, retry, owed: the details; None where there is none.
    """

    def __init__(self, error: grpc.aio.AioRpcError) -> None:
        self.code = error.code()
        self.info = ErrorInfo()
        self.text = LocalizedMessage()
        self.retry: RetryInfo | None = None
        self.owed: Owed | None = None
        for key, value in error.trailing_metadata() or ():
            if key == DETAILS_KEY:
                self._read(Status.FromString(value))
        self.reason = self.info.reason
        super().__init__(f"{self.code.name} {self.reason} {error.details()}")

    def _read(self, status: Status) -> None:
        for detail in status.details:
            retry, owed = RetryInfo(), Owed()
            if detail.Unpack(retry):
                self.retry = retry
            elif detail.Unpack(owed):
                self.owed = owed
            elif not detail.Unpack(self.info):
                detail.Unpack(self.text)


class Caller:
    """A player who calls any replica."""

    def __init__(self, data: Path, player: str) -> None:
        self.player = player
        self.metadata = metadata(data, player)

    async def call(self, at: Replica, method: str, request: Any, *more: tuple[str, str]) -> Any:
        """One call.

        Raises:
            Refused: it was.
        """
        try:
            return await getattr(at.stub, method)(
                request, metadata=(*self.metadata, *more), timeout=PATIENCE_S
            )
        except grpc.aio.AioRpcError as error:
            raise Refused(error) from None

    async def view(
        self, at: Replica, table_id: str, min_version: int = 0, code: str = ""
    ) -> view_pb2.TableView:
        """GetView."""
        request = pb.GetViewRequest(table_id=table_id, min_version=min_version, spectator_code=code)
        view: view_pb2.TableView = (await self.call(at, "GetView", request)).view
        return view

    def watch(self, at: Replica, table_id: str, after: str = "", code: str = "") -> "Watching":
        """Watch."""
        request = pb.WatchRequest(table_id=table_id, after=after, spectator_code=code)
        return Watching(at.stub.Watch(request, metadata=self.metadata))


class Watching:
    """A watch under way."""

    def __init__(self, call: Any) -> None:
        self.call = call

    async def next(self, within_s: float = PATIENCE_S) -> pb.WatchResponse:
        """The next message.

        Raises:
            Refused: the stream ended with a status.
            TimeoutError: nothing came.
        """
        try:
            message = await asyncio.wait_for(self.call.read(), within_s)
        except grpc.aio.AioRpcError as error:
            raise Refused(error) from None
        assert message is not grpc.aio.EOF, "the stream ended without a status"
        return message

    async def until(self, version: int, within_s: float = PATIENCE_S) -> list[pb.WatchResponse]:
        """All messages up to the update (or snapshot) of a version."""
        messages = []
        async with asyncio.timeout(within_s):
            while True:
                messages.append(await self.next(within_s))
                reached = messages[-1].update.version or messages[-1].snapshot.version
                if reached >= version:
                    return messages

    def stop(self) -> None:
        """Leave."""
        self.call.cancel()


def context(table_id: str, version: int = 0, command_id: str = "") -> pb.CommandContext:
    """A command's context, with a fresh id unless one is given."""
    return pb.CommandContext(table_id=table_id, command_id=command_id or str(uuid.uuid4()), version=version)


def founding(
    players: Sequence[str] = PLAYERS, overrides: Mapping[str, str] | None = None, **fields: Any
) -> pb.CreateTableRequest:
    """A request to found a table, with these players on seats 0, 1, …"""
    values = {"command_id": str(uuid.uuid4()), "preset": "classic-2d", "pace": AT_ONCE} | fields
    return pb.CreateTableRequest(
        overrides=[RuleOption(name=name, value=value) for name, value in (overrides or {}).items()],
        seats=[Seat(seat=seat, player_id=player) for seat, player in enumerate(players)],
        **values,
    )


class Game:
    """A table with four scripted players, who may call a different replica each time.

    Attributes:
        table_id: the table.
        founded: the answer to CreateTable.
        callers: the four players.
        version: the newest version that a receipt named.
    """

    def __init__(self, replicas: Sequence[Replica], players: Sequence[str] = PLAYERS) -> None:
        self.replicas = replicas
        self.callers = [Caller(replicas[0].data, player) for player in players]
        self.table_id = ""
        self.founded = pb.CreateTableResponse()
        self.version = 0
        self._calls = 0

    @property
    def at(self) -> Replica:
        """The replica of the next call: each in turn."""
        self._calls += 1
        return self.replicas[self._calls % len(self.replicas)]

    async def found(self, request: pb.CreateTableRequest | None = None) -> None:
        """Found the table."""
        request = request or founding([caller.player for caller in self.callers])
        self.founded = await self.callers[0].call(self.at, "CreateTable", request)
        self.table_id = self.founded.table_id
        self.version = 1

    async def do(
        self, seat: int, method: str, version: int = 0, command_id: str = "", **fields: Any
    ) -> pb.Receipt:
        """One command of a seat."""
        request = getattr(pb, method + "Request")(
            context=context(self.table_id, version, command_id), **fields
        )
        receipt: pb.Receipt = (await self.callers[seat].call(self.at, method, request)).receipt
        self.version = max(self.version, receipt.version)
        return receipt

    async def view(self, seat: int) -> view_pb2.TableView:
        """A seat's view, at least as new as every receipt."""
        return await self.callers[seat].view(self.at, self.table_id, self.version)

    async def deal(self) -> None:
        """Four readies."""
        for seat in range(4):
            await self.do(seat, "Ready", client_seed=bytes([seat]))

    async def pass_all(self) -> int:
        """Four passes; the declarer."""
        for seat in range(4):
            await self.do(seat, "Pass")
        return (await self.view(0)).declarer

    async def bury(self) -> int:
        """The declarer buries the first cards of the hand; the declarer."""
        declarer = (await self.view(0)).declarer
        view = await self.view(declarer)
        cards = list(view.hand)[: view.kitty_size]
        await self.do(declarer, "Bury", view.version, cards=cards)
        return declarer

    async def to_tricks(self) -> int:
        """From four readies to the first lead; the seat that leads."""
        await self.deal()
        await self.pass_all()
        return await self.bury()

    async def play_one(self, seat: int) -> pb.Receipt:
        """The best legal play of the seat whose turn it is."""
        while True:
            plays = await self.legal(seat, cap=1)
            if plays.version >= self.version:
                return await self.do(seat, "Play", plays.version, cards=plays.plays[0].cards)
            await asyncio.sleep(0.01)  # this replica has not heard of the newest yet

    async def legal(self, seat: int, cap: int = 0) -> pb.LegalPlaysResponse:
        """LegalPlays."""
        request = pb.LegalPlaysRequest(table_id=self.table_id, cap=cap)
        response: pb.LegalPlaysResponse = await self.callers[seat].call(self.at, "LegalPlays", request)
        return response

    async def play_deal(self, seat: int) -> view_pb2.TableView:
        """Tricks until the deal is over; the view then."""
        while True:
            await self.play_one(seat)
            view = await self.view(seat)
            if view.phase != view_pb2.PHASE_TRICKS:
                return view
            (seat,) = view.to_act
