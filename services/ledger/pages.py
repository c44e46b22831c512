"""Pages: how long they may be, and the opaque tokens with which the next one is asked for.

A token is the place where the page before ended, bound to the question that it belongs to. It is no secret
and no permission: who asks is checked with every page.
"""

import binascii
import hashlib
import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from typing import Final

from services.rules.reasons import Reason
from services.shell.errors import RefusedError

MOST: Final = 100
"""Rows of a page."""
_TOKEN_MOST: Final = 512
_CHECK: Final = 8

Place = Sequence[int | float | str]
"""Where a page ended: values of the columns that it is ordered by."""


def size_of(asked: int, usual: int) -> int:
    """How many rows a page is to have.

    Raises:
        RefusedError: more than there may be.
    """
    if asked > MOST:
        raise bad("page_size", f"must be from 1 to {MOST}")
    return asked or usual


def token_of(question: str, place: Place) -> str:
    """The token for the page after a place."""
    body = json.dumps(list(place), separators=(",", ":")).encode()
    return urlsafe_b64encode(_check(question, body) + body).decode().rstrip("=")


def place_of(question: str, token: str, form: tuple[type, ...]) -> list[int | float | str] | None:
    """The place that a token means; None for an empty one.

    Args:
        question: everything that was asked for beside the page.
        token: as it came.
        form: the types of the place's values.

    Raises:
        RefusedError: a token that was not given for this question.
    """
    if not token:
        return None
    try:
        if len(token) > _TOKEN_MOST:
            raise ValueError
        raw = urlsafe_b64decode(token.encode("ascii") + b"=" * (-len(token) % 4))
        body = raw[_CHECK:]
        if raw[:_CHECK] != _check(question, body):
            raise ValueError
        place: list[int | float | str] = json.loads(body)
    except (ValueError, binascii.Error):
        raise bad("page_token", "is not one that was given for this question") from None
    if [type(value) for value in place] != list(form):
        raise bad("page_token", "is not one that was given for this question")
    return place


def _check(question: str, body: bytes) -> bytes:
    return hashlib.sha256(f"{question}\n".encode() + body).digest()[:_CHECK]


def bad(field: str, detail: str) -> RefusedError:
    """A field of a request that is not right."""
    return RefusedError(Reason.BAD_INPUT, {"field": field, "detail": detail})
