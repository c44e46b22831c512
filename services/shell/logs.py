"""JSON log lines with a closed set of fields: there is no field that a card or a token could stand in."""

import logging
import sys
import traceback
from collections.abc import MutableMapping
from typing import Any, Final, Self, TextIO, TypedDict, Unpack

import structlog

LEVELS: Final = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}


class Fields(TypedDict, total=False):
    """What a line may say beside ts, level, service and event."""

    table_id: str
    version: int
    player_id: str
    rpc: str
    reason: str
    trace_id: str
    code: str
    """The status that a call ended with."""
    seconds: float
    count: int
    address: str
    metrics_port: int
    """Where the Prometheus exporter listens; 0 for none."""
    fault: str
    """What kind of error it was and where, as :func:`fault_of` says it."""
    detail: str
    """A fixed text of the code's own; never an error's message, which may quote what it was about."""


ORDER: Final = ("ts", "level", "service", "event", *Fields.__annotations__)
"""Every field of a line, in the order written."""


class Log:
    """The log of one service."""

    def __init__(self, service: str, level: str = "info", file: TextIO | None = None) -> None:
        self._bound = structlog.wrap_logger(
            structlog.WriteLogger(file or sys.stderr),
            processors=[
                structlog.processors.TimeStamper(fmt="iso", utc=True, key="ts"),
                structlog.processors.add_log_level,
                _closed,
                structlog.processors.JSONRenderer(ensure_ascii=False),
            ],
            wrapper_class=structlog.make_filtering_bound_logger(LEVELS[level]),
            service=service,
        )

    def debug(self, event: str, **fields: Unpack[Fields]) -> None:
        """For who looks for something: each call."""
        self._bound.debug(event, **fields)

    def info(self, event: str, **fields: Unpack[Fields]) -> None:
        """The life of a process."""
        self._bound.info(event, **fields)

    def warning(self, event: str, **fields: Unpack[Fields]) -> None:
        """Went wrong and heals by itself."""
        self._bound.warning(event, **fields)

    def error(self, event: str, **fields: Unpack[Fields]) -> None:
        """Somebody must look."""
        self._bound.error(event, **fields)

    def adopt_libraries(self) -> Self:
        """Write what libraries log through the standard module, from warnings on, as lines of this log."""
        logging.basicConfig(handlers=[_Bridge(self)], level=logging.WARNING, force=True)
        return self


def fault_of(error: BaseException) -> str:
    """The kind of an error and its innermost three places; not its message, which may hold a card."""
    places = traceback.extract_tb(error.__traceback__)[-3:]
    trail = " < ".join(f"{place.filename.rpartition('/')[2]}:{place.lineno}" for place in reversed(places))
    return f"{type(error).__name__} at {trail}" if trail else type(error).__name__


class _Bridge(logging.Handler):
    def __init__(self, log: Log) -> None:
        super().__init__()
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        say = self._log.error if record.levelno >= logging.ERROR else self._log.warning
        if record.name.startswith("services."):
            # Our own shell: an event and fields, like any line; unknown fields are dropped as everywhere.
            say(record.msg, **{name: record.__dict__[name] for name in ORDER if name in record.__dict__})
            return
        error = record.exc_info[1] if record.exc_info else None
        where = fault_of(error) if error else f"{record.filename}:{record.lineno}"
        say("library", detail=record.name, fault=where)


def _closed(_: Any, __: str, event: MutableMapping[str, Any]) -> dict[str, Any]:
    """Order the fields and keep only those that are known, whatever got past the type checker."""
    return {name: event[name] for name in ORDER if name in event}
