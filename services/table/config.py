"""What the table service can be told, beside what every service is told."""

from dataclasses import dataclass
from typing import Annotated

from services.shell.config import ServiceConfig, Setting


@dataclass(frozen=True, kw_only=True)
class TableConfig(ServiceConfig):
    """Settings of the table service."""

    listen: Annotated[str, Setting("address of the gRPC server; port 0 takes a free one")] = "127.0.0.1:7433"
    tls_cert: Annotated[str, Setting("certificate chain (PEM); required unless only loopback is served")] = ""
    tls_key: Annotated[str, Setting("its private key (PEM)")] = ""
    issuers: Annotated[
        tuple[str, ...],
        Setting("who signs players' tokens, as name=file (PEM or JWKS); empty: this machine's own"),
    ] = ()
    bot_issuers: Annotated[tuple[str, ...], Setting("who signs tokens for `bot:…` only, likewise")] = ()
    service_issuers: Annotated[tuple[str, ...], Setting("who signs tokens for `svc:…` only, likewise")] = ()
    master_keys: Annotated[
        str,
        Setting("master keys as id:hex, separated by commas, the last in use; empty: DATA/keys", secret=True),
    ] = ""
    open_tables: Annotated[int, Setting("tables kept in memory", least=1)] = 20_000
    idle_s: Annotated[float, Setting("seconds after which an untouched table leaves memory", least=1)] = 900.0
    watchers: Annotated[int, Setting("watchers served at once", least=1)] = 20_000
    command_rate: Annotated[float, Setting("commands a second and player; 0 for no limit", least=0)] = 100.0
    view_rate: Annotated[float, Setting("views and legal plays a second and player, likewise", least=0)] = (
        100.0
    )
    watch_rate: Annotated[float, Setting("watches begun a second and player, likewise", least=0)] = 10.0
    founders: Annotated[
        str, Setting("who founds tables; `services` where a lobby does it", choices=("all", "services"))
    ] = "all"
    create_rate: Annotated[float, Setting("tables founded a second and player, likewise", least=0)] = 5.0
    stranger_rate: Annotated[float, Setting("bad tokens a second and address, likewise", least=0)] = 50.0
    development: Annotated[
        bool, Setting("allow what must never be allowed where people play", hidden=True)
    ] = False
    insecure_entropy: Annotated[
        str, Setting("every new table's cards follow from this text: never for real play", hidden=True)
    ] = ""


BURST_S = 4.0
"""A caller may save up the calls of so many seconds."""
