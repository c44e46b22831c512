"""Refusals as clients see them: google.rpc.Status with ErrorInfo, LocalizedMessage, RetryInfo and `Owed`."""

import math
from collections.abc import Mapping
from typing import Final

import grpc
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.rpc.error_details_pb2 import ErrorInfo, LocalizedMessage, RetryInfo
from google.rpc.status_pb2 import Status

from services.rules.reasons import Reason, message
from services.shell.log_store import Unavailable, Why

DETAILS_KEY: Final = "grpc-status-details-bin"
"""Where gRPC carries a Status in the trailing metadata."""
DETAIL_CHARACTERS: Final = 200
"""Of one detail; clients accept only so much metadata."""

_INVALID: Final = (
    Reason.UNKNOWN_PRESET,
    Reason.UNKNOWN_KIND,
    Reason.UNKNOWN_OPTION,
    Reason.BAD_OPTION,
    Reason.BAD_CARD,
    Reason.TOO_MANY_COPIES,
    Reason.BAD_INPUT,
    Reason.BAD_ID,
    Reason.TOO_LARGE,
)
_NOT_FOUND: Final = (
    Reason.UNKNOWN_TABLE,
    Reason.UNKNOWN_PLAYER,
    Reason.UNKNOWN_ROOM,
    Reason.UNKNOWN_CODE,
    Reason.UNKNOWN_TICKET,
    Reason.UNKNOWN_OPERATOR,
    Reason.UNKNOWN_PHRASE,
    Reason.UNKNOWN_SEASON,
)
_CODES: Final[Mapping[Reason, grpc.StatusCode]] = {
    **dict.fromkeys(_INVALID, grpc.StatusCode.INVALID_ARGUMENT),
    **dict.fromkeys(_NOT_FOUND, grpc.StatusCode.NOT_FOUND),
    Reason.NOT_SEATED: grpc.StatusCode.PERMISSION_DENIED,
    Reason.NOT_YOURS: grpc.StatusCode.PERMISSION_DENIED,
    Reason.NOT_HOST: grpc.StatusCode.PERMISSION_DENIED,
    Reason.NOT_IN_ROOM: grpc.StatusCode.PERMISSION_DENIED,
    Reason.KICKED: grpc.StatusCode.PERMISSION_DENIED,
    Reason.STALE_VERSION: grpc.StatusCode.ABORTED,
    Reason.COMMAND_ID_REUSED: grpc.StatusCode.ALREADY_EXISTS,
    Reason.UNAUTHENTICATED: grpc.StatusCode.UNAUTHENTICATED,
    Reason.SIGN_IN_FAILED: grpc.StatusCode.UNAUTHENTICATED,
    Reason.TOKEN_REUSED: grpc.StatusCode.UNAUTHENTICATED,
    Reason.ALREADY_LINKED: grpc.StatusCode.ALREADY_EXISTS,
    Reason.ARCHIVE_DAMAGED: grpc.StatusCode.DATA_LOSS,
    Reason.RATE_LIMITED: grpc.StatusCode.RESOURCE_EXHAUSTED,
    Reason.SLOW_READER: grpc.StatusCode.RESOURCE_EXHAUSTED,
    Reason.BUSY: grpc.StatusCode.UNAVAILABLE,
    Reason.UNAVAILABLE: grpc.StatusCode.UNAVAILABLE,
    Reason.CANNOT_RECORD: grpc.StatusCode.UNAVAILABLE,
    Reason.DRAINING: grpc.StatusCode.UNAVAILABLE,
    Reason.INTERNAL: grpc.StatusCode.INTERNAL,
}
_RETRY_S: Final[Mapping[Reason, float]] = {
    Reason.BUSY: 0.5,
    Reason.UNAVAILABLE: 0.5,
    Reason.CANNOT_RECORD: 5.0,
    Reason.DRAINING: 0.1,
    Reason.SLOW_READER: 0.1,
    Reason.RATE_LIMITED: 1.0,
}
"""When to try again, where the refusal itself does not say."""


class RefusedError(Exception):
    """A call that is refused, with everything the caller is told."""

    def __init__(
        self,
        reason: Reason,
        detail: Mapping[str, object] | None = None,
        *,
        retry_after_s: float | None = None,
        attachment: Message | None = None,
    ) -> None:
        """Refuse.

        Args:
            reason: why.
            detail: named values for the text and for ErrorInfo; only what the caller may know.
            retry_after_s: seconds after which a retry makes sense; None for the reason's usual time.
            attachment: one more detail of the status, such as `Owed`.
        """
        super().__init__(reason)
        self.reason = reason
        self.detail: Mapping[str, object] = detail or {}
        self.retry_after_s = _RETRY_S.get(reason) if retry_after_s is None else retry_after_s
        self.attachment = attachment


_REASONS: Final = {Why.STORE_FULL: Reason.CANNOT_RECORD, Why.BUSY: Reason.BUSY}


def unavailable(error: Unavailable) -> RefusedError:
    """A log's or store's "not now" as the caller is told it."""
    return RefusedError(_REASONS.get(error.why, Reason.UNAVAILABLE), retry_after_s=error.retry_after_s)


def code_of(reason: Reason) -> grpc.StatusCode:
    """The status code of a reason: FAILED_PRECONDITION is what is against the rules or the phase."""
    return _CODES.get(reason, grpc.StatusCode.FAILED_PRECONDITION)


def status_of(refused: RefusedError, domain: str, locale: str) -> Status:
    """The whole answer; ``domain`` such as "shengji.table", ``locale`` "zh" or "en"."""
    reason = refused.reason
    shown = {name: str(value)[:DETAIL_CHARACTERS] for name, value in refused.detail.items()}
    status = Status(code=code_of(reason).value[0], message=message(reason, "en", **shown))
    details: list[Message] = [
        ErrorInfo(reason=reason.name, domain=domain, metadata=shown),
        LocalizedMessage(locale=locale, message=message(reason, locale, **shown)),
    ]
    if refused.retry_after_s is not None:
        delay = Duration()
        # Never a little too early, nor "at once": what is left over counts as a whole millisecond.
        delay.FromMilliseconds(math.ceil(refused.retry_after_s * 1000 - 1e-6))
        details.append(RetryInfo(retry_delay=delay))
    if refused.attachment is not None:
        details.append(refused.attachment)
    for detail in details:
        status.details.add().Pack(detail)
    return status


def locale_of(accept_language: str) -> str:
    """The better of "zh" and "en" for an accept-language header; "en" when neither is named."""
    best, weight = "en", 0.0
    for part in accept_language.lower().split(","):
        tag, _, quality = part.strip().partition(";q=")
        try:
            q = float(quality) if quality else 1.0
        except ValueError:
            continue
        if tag[:2] in {"zh", "en"} and q > weight:
            best, weight = tag[:2], q
    return best
