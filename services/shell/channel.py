"""Calling one service from another: the channel, who calls, and what refusals mean."""

import time
from pathlib import Path
from typing import Final

import grpc
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from google.rpc.error_details_pb2 import ErrorInfo
from google.rpc.status_pb2 import Status

from services.shell.config import ConfigError, is_loopback, split_address
from services.shell.errors import DETAILS_KEY
from services.shell.tokens import LIFETIME_S, sign
from services.shell.trust import SERVICE_ISSUER

PASSING: Final = frozenset(
    {
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.DEADLINE_EXCEEDED,
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        grpc.StatusCode.UNKNOWN,
        grpc.StatusCode.INTERNAL,
        grpc.StatusCode.CANCELLED,
    }
)
"""Codes after which the same call may be made again, and may succeed."""
_RENEW_S: Final = LIFETIME_S * 0.8


def open_channel(addresses: str, ca: str = "") -> grpc.aio.Channel:
    """A channel to all the servers of a service: called in turn, so that the loss of one stops nobody.

    Args:
        addresses: ``host:port``, or several separated by commas.
        ca: file of the certificates to trust; empty for no TLS, which only this machine's own servers may do.

    Raises:
        ConfigError: an address that is none or would need TLS, or certificates that cannot be read.
    """
    each = [address.strip() for address in addresses.split(",")]
    hosts = [split_address(address)[0] for address in each]
    target = each[0] if len(each) == 1 else "ipv4:" + ",".join(each)
    options = (
        ("grpc.lb_policy_name", "round_robin"),
        ("grpc.keepalive_time_ms", 45_000),
        ("grpc.max_reconnect_backoff_ms", 300),
    )
    if ca:
        try:
            roots = Path(ca).read_bytes()
        except OSError as error:
            raise ConfigError(f"{error.filename} cannot be read: {error.strerror}") from None
        return grpc.aio.secure_channel(target, grpc.ssl_channel_credentials(roots), options)
    if not all(is_loopback(host) for host in hosts):
        raise ConfigError(f"{addresses} is not all on this machine: a CA file is required")
    return grpc.aio.insecure_channel(target, options)


class ServiceToken:
    """The token with which a service calls others, signed anew before it ends."""

    def __init__(self, key: Ed25519PrivateKey, caller: str) -> None:
        """Sign with the services' key, for a caller such as ``svc:lobby``."""
        self._key = key
        self._caller = caller
        self._signed_at = 0.0
        self._metadata: tuple[tuple[str, str]] = (("authorization", ""),)

    def metadata(self) -> tuple[tuple[str, str]]:
        """What goes with every call."""
        now = time.time()
        if now - self._signed_at > _RENEW_S:
            token = sign(self._key, SERVICE_ISSUER, self._caller)
            self._metadata, self._signed_at = (("authorization", f"Bearer {token}"),), now
        return self._metadata


def reason_of(error: grpc.aio.AioRpcError) -> str:
    """The name of the reason in a status' ErrorInfo, or an empty text."""
    return str(_info(error).reason)


def detail_of(error: grpc.aio.AioRpcError) -> dict[str, str]:
    """The named details in a status' ErrorInfo, if it has one."""
    return dict(_info(error).metadata)


def _info(error: grpc.aio.AioRpcError) -> ErrorInfo:
    info = ErrorInfo()
    for key, value in error.trailing_metadata() or ():
        if key == DETAILS_KEY and isinstance(value, bytes):
            for detail in Status.FromString(value).details:
                if detail.Unpack(info):
                    return info
    return info
