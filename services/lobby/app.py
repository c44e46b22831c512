"""The lobby process: put together, run, and taken apart in order."""

import asyncio
import os
import sys
import time
from collections.abc import Mapping
from random import Random
from typing import Final

import grpc
from google.protobuf.descriptor import ServiceDescriptor
from prometheus_client import CollectorRegistry

from services.lobby import player_servicer
from services.lobby.accounts import Accounts
from services.lobby.aftermath import Aftermath
from services.lobby.config import BURST_S, LobbyConfig
from services.lobby.deps import Deps, Mirrors
from services.lobby.founding import Founding
from services.lobby.ledger_client import LedgerClient
from services.lobby.match_servicer import MatchServicer
from services.lobby.members import Members
from services.lobby.metrics import LobbyMetrics
from services.lobby.mirror import Mirror
from services.lobby.operator_servicer import OperatorServicer
from services.lobby.operators import ApiKeys
from services.lobby.passes import Passes
from services.lobby.player_servicer import PlayerServicer
from services.lobby.ports import EqualRatings, Funds, NoFunds, Ratings
from services.lobby.presence import Presence
from services.lobby.presence_servicer import PresenceServicer
from services.lobby.report_store import JetStreamReports
from services.lobby.reports import Reports
from services.lobby.room_lists import RoomLists
from services.lobby.room_servicer import RoomServicer
from services.lobby.room_sweeper import RoomSweeper
from services.lobby.sessions import Sessions
from services.lobby.signing import Signer
from services.lobby.stays import Stays, StayTools
from services.lobby.store_jetstream import JetStreamStore
from services.lobby.table_client import TableClient
from services.lobby.table_log import JetStreamTableLog
from services.lobby.talk import Talk
from services.lobby.tickets import Tickets
from services.lobby.users import Users
from services.lobby.whereabouts import Finder
from services.pb.lobby.v1 import (
    match_service_pb2,
    operator_service_pb2,
    player_service_pb2,
    presence_service_pb2,
    room_service_pb2,
)
from services.pb.lobby.v1.stored_pb2 import PlaceRecord, RoomRecord, TicketRecord
from services.shell import process, server
from services.shell.broker import Broker, ensure_lobby_streams
from services.shell.bus import NatsBus
from services.shell.channel import open_channel
from services.shell.config import ConfigError
from services.shell.keys import signing_key
from services.shell.limits import Buckets
from services.shell.log_jetstream import JetStreamLog
from services.shell.logs import Log
from services.shell.metrics import RpcMetrics, build_info
from services.shell.process import distribution_version, tls_of
from services.shell.renewals import Renewals
from services.shell.rpc import Guard
from services.shell.tokens import Verifier
from services.shell.trust import SERVICE_ISSUER, trusted

PLAYERS: Final = player_service_pb2.DESCRIPTOR.services_by_name["PlayerService"]
OPERATORS: Final = operator_service_pb2.DESCRIPTOR.services_by_name["OperatorService"]
ROOMS: Final = room_service_pb2.DESCRIPTOR.services_by_name["RoomService"]
MATCHES: Final = match_service_pb2.DESCRIPTOR.services_by_name["MatchService"]
PRESENCE: Final = presence_service_pb2.DESCRIPTOR.services_by_name["PresenceService"]
SERVED: Final = (PLAYERS, OPERATORS, ROOMS, MATCHES, PRESENCE)
DOMAIN: Final = "shengji.lobby"
SCOPE: Final = "lobby"
"""What a token's scope must name."""


def clock_ms() -> int:
    """Milliseconds of Unix time."""
    return time.time_ns() // 1_000_000


class LobbyService:
    """The working parts of a lobby service, on a connection to NATS.

    Attributes:
        registry: the metrics.
        running: the server, while it serves.
    """

    def __init__(self, config: LobbyConfig, broker: Broker, log: Log) -> None:
        """Put them together; nothing runs yet.

        Raises:
            ConfigError: an issuer that is not name=file, or an address that would need TLS.
            KeyFileError: a key cannot be used.
        """
        self._config = config
        self.registry = CollectorRegistry()
        build_info(self.registry, version=distribution_version(), python=sys.version.split()[0])
        bus = NatsBus(broker)
        key = signing_key(config.data, SERVICE_ISSUER)
        self._channels = [open_channel(config.table, config.table_ca)]
        ratings: Ratings = EqualRatings()
        funds: Funds = NoFunds()
        if config.ledger:
            self._channels.append(open_channel(config.ledger, config.ledger_ca))
            ratings = funds = LedgerClient(self._channels[-1], key, log)
        metrics = LobbyMetrics(self.registry)
        deps = Deps(
            store=JetStreamStore(broker, on_conflict=metrics.conflicts.inc),
            bus=bus,
            now_ms=clock_ms,
            random=Random(config.insecure_entropy).randbytes if config.insecure_entropy else os.urandom,
            ratings=ratings,
            funds=funds,
            metrics=metrics,
            log=log,
            foreseen=bool(config.insecure_entropy),
        )
        self._mirrors = Mirrors(
            rooms=Mirror(deps.store, "room", RoomRecord),
            places=Mirror(deps.store, "place", PlaceRecord),
            tickets=Mirror(deps.store, "ticket", TicketRecord),
        )
        self._renewals = Renewals(bus, "stays")
        self._presence = Presence(deps)
        table_log = JetStreamTableLog(broker)
        finder = Finder(deps.store, table_log, self._presence)
        tables = TableClient(self._channels[0], key)
        self._founding = Founding(deps, self._mirrors.rooms, tables)
        self._aftermath = Aftermath(deps, self._mirrors.rooms, broker)
        self._sweeper = RoomSweeper(deps, self._mirrors.rooms, self._presence, JetStreamLog(broker))
        tickets = Tickets(deps, self._mirrors.tickets)
        self._passes = Passes(deps, self._mirrors.tickets, tickets, self._presence)
        self._talk = Talk(deps, finder)
        tools = StayTools(
            deps, self._mirrors, self._presence, finder, self._talk, self._renewals, tickets.shown
        )
        self._stays = Stays(tools, config.stays)
        lists = RoomLists(self._mirrors.rooms, deps.now_ms, self._renewals)
        self._rooms = RoomServicer(deps, lists, self._presence)
        reports = Reports(deps, JetStreamReports(broker), table_log)
        presence = PresenceServicer(
            self._mirrors, self._presence, finder, self._stays, self._renewals, self._talk, reports
        )
        self._handlers = self._guarded(deps, tickets, presence, reports)
        self.running: server.Running | None = None

    def _guarded(
        self, deps: Deps, tickets: Tickets, presence: PresenceServicer, reports: Reports
    ) -> list[grpc.GenericRpcHandler]:
        """The handlers of all services, behind one guard."""
        config = self._config
        signer = Signer(config.data, deps.now_ms)  # before the verifier, which reads the keys that it makes
        verifier = Verifier(trusted(config.data, config.issuers), SCOPE)
        sessions = Sessions(deps, signer)
        self._members = Members(deps.store)
        users = Users(deps, sessions, verifier, self._members)
        metrics = RpcMetrics(self.registry, [name for service in SERVED for name in service.methods_by_name])
        guard = Guard(
            DOMAIN,
            verifier,
            metrics,
            deps.log,
            _buckets(config.stranger_rate),
            _buckets(config.operator_rate),
            refusals=deps.metrics.refusals,
        )
        players = PlayerServicer(Accounts(deps, sessions), sessions, signer)
        operators = OperatorServicer(users, sessions, reports)
        return [
            guard.handlers(
                PLAYERS, players, _limits(PLAYERS, config), open_methods=player_servicer.OPEN_METHODS
            ),
            guard.handlers(
                OPERATORS, operators, _limits(OPERATORS, config), by_key=ApiKeys(deps).authenticate
            ),
            guard.handlers(ROOMS, self._rooms, _limits(ROOMS, config)),
            guard.handlers(MATCHES, MatchServicer(tickets), _limits(MATCHES, config)),
            guard.handlers(PRESENCE, presence, _limits(PRESENCE, config)),
        ]

    async def start(self) -> server.Running:
        """Begin to serve.

        Raises:
            ConfigError: the address or the certificate cannot be used.
            Unavailable: NATS cannot be used.
        """
        try:
            for mirror in self._mirrors:
                await mirror.start()
            await self._renewals.start()
            await self._presence.start()
            await self._talk.start()
            await self._stays.start()
            self._founding.start()
            self._aftermath.start()
            self._sweeper.start()
            self._passes.start()
            config = self._config
            self.running = await server.start(
                self._handlers,
                [service.full_name for service in SERVED],
                config.listen,
                tls_of(config.tls_cert, config.tls_key),
            )
        except BaseException:
            await self.stop()
            raise
        return self.running

    async def stop(self, *, wait_s: float = server.NOT_SERVING_S, grace_s: float = server.GRACE_S) -> None:
        """Stop in order: clients first, then what works behind them."""
        if self.running is not None:
            running, self.running = self.running, None
            await running.drain(self._end_streams, wait_s=wait_s, grace_s=grace_s)
        for part in (self._passes, self._sweeper, self._aftermath, self._founding, self._stays):
            await part.stop()
        await self._presence.stop()
        await self._members.stop()
        for mirror in self._mirrors:
            await mirror.stop()
        for channel in self._channels:
            await channel.close()

    def _end_streams(self) -> None:
        self._stays.drain()
        self._rooms.drain()


def _buckets(rate: float) -> Buckets:
    return Buckets(rate, max(1.0, rate * BURST_S))


def _limits(service: ServiceDescriptor, config: LobbyConfig) -> Mapping[str, Buckets]:
    """The buckets of every method: one kind of limit for each kind of call."""
    rates = {
        "SignIn": config.sign_in_rate,
        "Refresh": config.sign_in_rate,
        "CreateRoom": config.create_rate,
        "CreateTicket": config.create_rate,
        "StartRoom": config.create_rate,
        "Report": config.create_rate,  # reads a table's whole course before it can be refused
    }
    if service is OPERATORS:
        return {name: _buckets(config.operator_rate) for name in service.methods_by_name}
    return {name: _buckets(rates.get(name, config.call_rate)) for name in service.methods_by_name}


async def serve(config: LobbyConfig) -> None:
    """Run the lobby service until SIGTERM or SIGINT; see ``process.serve``."""
    if config.insecure_entropy and not config.development:
        raise ConfigError("--insecure-entropy lets anybody foresee every secret; it needs --development")

    async def put_together(broker: Broker, log: Log) -> LobbyService:
        await ensure_lobby_streams(broker, config.nats_replicas)
        return LobbyService(config, broker, log)

    await process.serve("lobby", config, config.listen, put_together)


def run(config: LobbyConfig) -> None:
    """Run the service in an event loop of its own."""
    asyncio.run(serve(config))
