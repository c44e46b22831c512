"""News between processes of one kind: told at once to whoever listens, kept nowhere, lost when nobody does.

For what is worth nothing a moment later: who is online, what was said, which streams live longer.
"""

import contextlib
from collections.abc import Callable
from typing import Final, Protocol

from nats import errors
from nats.aio.msg import Msg

from services.shell.broker import Broker

_ROOT: Final = "sj.v1.bus."
Hear = Callable[[bytes], None]


class Bus(Protocol):
    """Topics are lower-case words, fixed in code."""

    async def tell(self, topic: str, news: bytes) -> None:
        """Tell everybody who listens, this process included; nobody, while there is no connection."""

    async def hear(self, topic: str, heard: Hear) -> None:
        """Be told from now on; ``heard`` must not block."""


class MemoryBus:
    """``Bus`` inside one process."""

    def __init__(self) -> None:
        self._heard: dict[str, list[Hear]] = {}

    async def tell(self, topic: str, news: bytes) -> None:
        """See ``Bus.tell``."""
        for heard in self._heard.get(topic, []):
            heard(news)

    async def hear(self, topic: str, heard: Hear) -> None:
        """See ``Bus.hear``."""
        self._heard.setdefault(topic, []).append(heard)


class NatsBus:
    """``Bus`` over core NATS; subscriptions outlive reconnections."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    async def tell(self, topic: str, news: bytes) -> None:
        """See ``Bus.tell``."""
        if not self._broker.connected:
            return
        try:
            await self._broker.client.publish(_ROOT + topic, news)
        except (
            errors.ConnectionClosedError,
            errors.ConnectionDrainingError,
            errors.OutboundBufferLimitError,
        ):
            return  # as if nobody had listened

    async def hear(self, topic: str, heard: Hear) -> None:
        """See ``Bus.hear``."""

        async def told(message: Msg) -> None:
            heard(message.data)

        await self._broker.subscribe(_ROOT + topic, told)
        with contextlib.suppress(errors.Error):  # without a connection it begins with the next one
            await self._broker.client.flush(1)
