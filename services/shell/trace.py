"""W3C trace context, passed through: from a call's metadata into message headers and log lines."""

import re
from contextvars import ContextVar
from typing import Final

TRACEPARENT: Final[ContextVar[str]] = ContextVar("traceparent", default="")
"""The traceparent of the call being served, or empty; the log store sends it on as a header of that name."""
_FORM: Final = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")


def accept(value: str) -> str:
    """A traceparent as received, or empty when it has not the form of one."""
    return value if _FORM.fullmatch(value) else ""


def trace_id(traceparent: str) -> str:
    """The 32 hexadecimal digits that name a trace, or empty."""
    return traceparent[3:35]
