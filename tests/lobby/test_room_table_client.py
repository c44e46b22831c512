"""The lobby's calls to the table service: who calls, and what its answers mean."""

from contextlib import asynccontextmanager

import grpc
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from google.rpc.status_pb2 import Status

from services.lobby.room_tables import LOBBY
from services.lobby.table_client import TableClient, TableRefusal, TableUnreachable
from services.pb.table.v1.table_service_pb2 import CreateTableRequest, CreateTableResponse
from services.pb.table.v1.table_service_pb2_grpc import (
    TableServiceServicer,
    add_TableServiceServicer_to_server,
)
from services.rules.reasons import Reason
from services.shell.channel import open_channel
from services.shell.config import ConfigError
from services.shell.errors import DETAILS_KEY, RefusedError, code_of, status_of
from services.shell.tokens import Issuer, Keys, Kind, Verifier
from services.shell.trust import SERVICE_ISSUER


class Answering(TableServiceServicer):
    """A table service that says what it is told to."""

    def __init__(self):
        self.reason = None
        self.tokens = []

    async def CreateTable(self, request, context):
        self.tokens.append(dict(context.invocation_metadata())["authorization"].removeprefix("Bearer "))
        if self.reason is not None:
            status: Status = status_of(RefusedError(self.reason), "shengji.table", "en")
            metadata = ((DETAILS_KEY, status.SerializeToString()),)
            await context.abort(code_of(self.reason), status.message, metadata)
        return CreateTableResponse(table_id="tbl", spectator_code=request.preset)


@asynccontextmanager
async def serving():
    answering, server = Answering(), grpc.aio.server()
    add_TableServiceServicer_to_server(answering, server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    channel = open_channel(f"127.0.0.1:{port}")
    key = Ed25519PrivateKey.generate()
    yield answering, TableClient(channel, key), key
    await channel.close()
    await server.stop(0)


async def test_the_lobby_calls_as_itself():
    async with serving() as (answering, client, key):
        request = CreateTableRequest(preset="classic-2d")
        assert (await client.create_table(request)).spectator_code == "classic-2d"
        await client.create_table(request)
    assert len(set(answering.tokens)) == 1, "a token is signed once in a while"
    verifier = Verifier([Issuer(SERVICE_ISSUER, Keys(key.public_key()), Kind.SERVICES)], "table")
    assert verifier.verify(answering.tokens[0]).player_id == LOBBY


@pytest.mark.parametrize("reason", [Reason.BAD_OPTION, Reason.NOT_YOURS, Reason.COMMAND_ID_REUSED])
async def test_refusals_for_good(reason):
    async with serving() as (answering, client, _):
        answering.reason = reason
        with pytest.raises(TableRefusal) as caught:
            await client.create_table(CreateTableRequest())
    assert caught.value.reason == reason.name


@pytest.mark.parametrize(
    "reason",
    [Reason.UNAVAILABLE, Reason.CANNOT_RECORD, Reason.RATE_LIMITED, Reason.INTERNAL, Reason.UNAUTHENTICATED],
)
async def test_what_may_succeed_later(reason):
    async with serving() as (answering, client, _):
        answering.reason = reason
        with pytest.raises(TableUnreachable):
            await client.create_table(CreateTableRequest())


async def test_nobody_there():
    channel = open_channel("127.0.0.1:1")
    with pytest.raises(TableUnreachable):
        await TableClient(channel, Ed25519PrivateKey.generate()).create_table(CreateTableRequest())
    await channel.close()


def test_channels_beyond_this_machine_need_tls(tmp_path):
    with pytest.raises(ConfigError, match="CA file"):
        open_channel("10.0.0.1:7433")
    with pytest.raises(ConfigError, match="cannot be read"):
        open_channel("10.0.0.1:7433", str(tmp_path / "none.pem"))
    with pytest.raises(ConfigError):
        open_channel("nonsense")
