"""The floor under a Play: a bare grpc.aio handler that publishes the bytes it is given, and nothing else.

``python -m services.bench.floor_server`` speaks to the same nats-server, over the same connection settings,
to the same subjects with the same expected-sequence headers as the table service, and waits for the same
durable acknowledgement. It checks no token, knows no game, and keeps of each table only the last sequence.

A request is a table id (30 characters), the kind of subject (1) and the bytes to store.
"""

import asyncio
import json
import os
import signal
import sys
from typing import Any, Final

import grpc

from services.game.ids import every_subject, subject
from services.shell.broker import Broker
from services.shell.inbox import Inbox
from services.shell.js_api import EXPECTED, EXPECTED_SUBJECT

METHOD: Final = "/shengji.bench.v1.Floor/Publish"
_ID: Final = 30
_ANSWER: Final = b"\x0a\x02\x08\x07"
"""As long as the answer to a Play: a receipt with a small version."""
_TIMEOUT_S: Final = 5.0


class Floor:
    """The handler."""

    def __init__(self, inbox: Inbox) -> None:
        self._inbox = inbox
        self._tables: dict[bytes, tuple[dict[str, str], str]] = {}
        self._last: dict[bytes, int] = {}

    async def publish(self, request: bytes, _: grpc.aio.ServicerContext[bytes, bytes]) -> bytes:
        """Publish and wait for the acknowledgement."""
        key = request[:_ID]
        subjects, every = self._tables.get(key) or self._places(key)
        headers = {EXPECTED: str(self._last.get(key, 0)), EXPECTED_SUBJECT: every}
        answer = await self._inbox.request(
            subjects[request[_ID : _ID + 1].decode()], request[_ID + 1 :], _TIMEOUT_S, headers
        )
        self._last[key] = json.loads(answer.data)["seq"]
        return _ANSWER

    def _places(self, key: bytes) -> tuple[dict[str, str], str]:
        table_id = key.decode()
        places = self._tables[key] = (
            {"m": subject(table_id, "m"), "d": subject(table_id, "d")},
            every_subject(table_id),
        )
        return places


async def serve(nats: str, listen: str) -> None:
    """Serve until SIGTERM."""
    broker = await Broker.connect(nats, "floor")
    server = grpc.aio.server()
    service, method = METHOD[1:].split("/")
    handler: grpc.RpcMethodHandler[Any, Any] = grpc.unary_unary_rpc_method_handler(
        Floor(broker.inbox).publish
    )
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, {method: handler}),))
    server.add_insecure_port(listen)
    await server.start()
    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    await stopped.wait()
    await server.stop(0)
    await broker.close()


def main() -> None:
    """Run in the same kind of event loop as the table service."""
    running = serve(os.environ["SHENGJI_NATS"], os.environ["SHENGJI_LISTEN"])
    if sys.platform == "win32":
        asyncio.run(running)
        return
    import uvloop  # noqa: PLC0415 - there is none for Windows

    uvloop.run(running)


if __name__ == "__main__":
    main()
