"""The two streams of a player, kept alive: the stay at the lobby and the watch of a table.

Each is a task that puts what comes into one queue, begins again after any loss where it stopped, and ends
only when it is told that there is nothing to follow.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any, Final, NamedTuple

import grpc

from services.cli.play.account import Account, Refused
from services.pb.lobby.v1.presence_service_pb2 import StayRequest, StayResponse
from services.pb.table.v1.table_service_pb2 import WatchRequest, WatchResponse

_QUIET_S: Final = 65.0
"""Heartbeats come every 20 s; a stream without any for so long is dead."""
_FINAL: Final = frozenset(
    {
        grpc.StatusCode.NOT_FOUND,
        grpc.StatusCode.PERMISSION_DENIED,
        grpc.StatusCode.INVALID_ARGUMENT,
        grpc.StatusCode.FAILED_PRECONDITION,
    }
)


class Stayed(NamedTuple):
    """The lobby says something."""

    message: StayResponse


class Watched(NamedTuple):
    """The table says something."""

    table_id: str
    message: WatchResponse


class WatchOver(NamedTuple):
    """There is nothing more to watch at a table."""

    table_id: str
    refused: Refused | None


class Line(NamedTuple):
    """A line was typed; None for the end of input."""

    text: str | None


class Trouble(NamedTuple):
    """Answers stopped coming (True), or come again."""

    lost: bool


Happening = Stayed | Watched | WatchOver | Line | Trouble
Queue = asyncio.Queue[Happening]


async def stay(account: Account, queue: Queue) -> None:
    """Be online, for as long as the task lives."""
    async for message in _kept(account, queue, lambda: (account.presence.Stay, StayRequest())):
        queue.put_nowait(Stayed(message))


async def watch(account: Account, queue: Queue, table_id: str) -> None:
    """Follow a table, from a snapshot on, until nothing is to be followed."""
    after = ""

    def request() -> tuple[Any, Any]:
        return account.table.Watch, WatchRequest(table_id=table_id, after=after)

    try:
        async for message in _kept(account, queue, request):
            after = message.resume or after
            queue.put_nowait(Watched(table_id, message))
            if any(event.HasField("table_closed") for event in message.update.events):
                break
    except Refused as refused:
        queue.put_nowait(WatchOver(table_id, refused))
    else:
        queue.put_nowait(WatchOver(table_id, None))


async def _kept(account: Account, queue: Queue, opening: Callable[[], tuple[Any, Any]]) -> AsyncIterator[Any]:
    """Messages of a stream that begins again after each loss.

    Raises:
        Refused: it cannot begin again.
    """
    pause, troubled, missing = 0.1, False, 0
    while True:
        method, request = opening()
        stale = account.token
        call = method(request, metadata=account.metadata())
        try:
            while True:
                async with asyncio.timeout(_QUIET_S):  # wait_for may lose a cancellation to a message
                    message = await call.read()
                if message is grpc.aio.EOF:
                    break
                if troubled:
                    queue.put_nowait(Trouble(lost=False))
                pause, troubled, missing = 0.1, False, 0
                yield message
        except TimeoutError:
            pass
        except grpc.aio.AioRpcError as error:
            refused = Refused(error, account.language)
            if refused.code is grpc.StatusCode.UNAUTHENTICATED:
                await account.renewed(stale)
            elif refused.code in _FINAL:
                missing += 1  # a table may be named a moment before it is founded
                if refused.code is not grpc.StatusCode.NOT_FOUND or missing > 20:
                    raise refused from None
        finally:
            call.cancel()
        if not troubled and pause > 0.5:
            troubled = True
            queue.put_nowait(Trouble(lost=True))
        await asyncio.sleep(pause)
        pause = min(2.0, pause * 1.7)
