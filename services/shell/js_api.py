"""JetStream's JSON answers and its error codes, for everything here that asks it something."""

import json
from collections.abc import Mapping
from typing import Any, Final

from services.shell.inbox import Inbox, NoAnswer, Nobody, NotSent
from services.shell.log_store import Unavailable, Why

EXPECTED: Final = "Nats-Expected-Last-Subject-Sequence"
"""Header: store only if the subject's newest message has this sequence, 0 for none."""
EXPECTED_SUBJECT: Final = "Nats-Expected-Last-Subject-Sequence-Subject"
"""Header: compare over this wildcard rather than the message's own subject."""
SEQUENCE: Final = "Nats-Sequence"
SUBJECT: Final = "Nats-Subject"
PENDING: Final = "Nats-Num-Pending"

WRONG_LAST: Final = 10071
IN_FLIGHT: Final = frozenset({10164, 10163, 10158})
"""A write of the subject is under way."""
NOT_READY: Final = frozenset({10008, 10167})
"""Starting, without a leader, or overwhelmed."""
BATCH_DROPPED: Final = frozenset({10176, 10210})
"""A message of an atomic batch did not come, or too many batches are open; nothing of it is stored."""
STORE_FULL: Final = frozenset({10023, 10077})
NOT_FOUND: Final = 10037


async def ask(
    inbox: Inbox,
    subject: str,
    payload: bytes,
    timeout_s: float,
    headers: dict[str, str] | None = None,
) -> dict[str, Any]:
    """One request to JetStream and its answer, which may be an ``error`` of JetStream's.

    Raises:
        Unavailable: no connection, or no answer in time.
    """
    try:
        message = await inbox.request(subject, payload, timeout_s, headers)
    except NotSent:
        raise Unavailable(Why.NOT_CONNECTED) from None
    except (NoAnswer, Nobody):
        raise Unavailable(Why.NO_ANSWER) from None
    answer: dict[str, Any] = json.loads(message.data)
    return answer


async def get_message(
    inbox: Inbox, stream: str, request: Mapping[str, object], timeout_s: float
) -> dict[str, Any] | None:
    """One message of a stream as its leader has it, None if it has none such.

    Args:
        inbox: the connection's inbox.
        stream: the stream.
        request: which one: ``{"last_by_subj": subject}``, or ``{"seq": n, "next_by_subj": wildcard}``.
        timeout_s: how long to wait.

    Returns:
        ``subject``, ``seq`` and, in base 64, ``data`` and ``hdrs``, the latter two absent when empty.

    Raises:
        Unavailable: no answer, or the server is not ready.
    """
    answer = await ask(inbox, f"$JS.API.STREAM.MSG.GET.{stream}", json.dumps(request).encode(), timeout_s)
    error = answer.get("error")
    if error is None:
        message: dict[str, Any] = answer["message"]
        return message
    if error.get("err_code") == NOT_FOUND:
        return None
    raise refusal(error)


def header_lines(raw: bytes) -> dict[str, str]:
    """The headers of a stored message, from the bytes that they are stored as."""
    lines = (line.partition(":") for line in raw.decode("utf-8", "replace").split("\r\n"))
    return {name.strip(): value.strip() for name, colon, value in lines if colon}


async def last_sequence(inbox: Inbox, stream: str, timeout_s: float) -> int:
    """Where a stream ends, as its leader has it.

    Raises:
        Unavailable: no answer, or the server is not ready.
    """
    answer = await ask(inbox, f"$JS.API.STREAM.INFO.{stream}", b"", timeout_s)
    if "error" in answer:
        raise refusal(answer["error"])
    last: int = answer["state"]["last_seq"]
    return last


async def create_consumer(inbox: Inbox, stream: str, config: Mapping[str, object], timeout_s: float) -> int:
    """Make a consumer without a name; how many messages it finds.

    Raises:
        Unavailable: no answer, or the server is not ready.
    """
    request = json.dumps({"stream_name": stream, "config": config}).encode()
    answer = await ask(inbox, f"$JS.API.CONSUMER.CREATE.{stream}", request, timeout_s)
    if "error" in answer:
        raise refusal(answer["error"])
    pending: int = answer["num_pending"]
    return pending


def refusal(error: Mapping[str, Any]) -> Unavailable:
    """What an error of JetStream's means to a caller who can do nothing about it."""
    code, detail = error.get("err_code", 0), f"{error.get('err_code')} {error.get('description', '')}"
    if code in STORE_FULL:
        return Unavailable(Why.STORE_FULL, detail, retry_after_s=5.0)
    if code in NOT_READY or error.get("code") == 503:
        return Unavailable(Why.NO_ANSWER, detail)
    return Unavailable(Why.REFUSED, detail, retry_after_s=5.0)
