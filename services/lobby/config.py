"""What the lobby service can be told, beside what every service is told."""

from dataclasses import dataclass
from typing import Annotated

from services.shell.config import ServiceConfig, Setting


@dataclass(frozen=True, kw_only=True)
class LobbyConfig(ServiceConfig):
    """Settings of the lobby service."""

    listen: Annotated[str, Setting("address of the gRPC server; port 0 takes a free one")] = "127.0.0.1:7434"
    tls_cert: Annotated[str, Setting("certificate chain (PEM); required unless only loopback is served")] = ""
    tls_key: Annotated[str, Setting("its private key (PEM)")] = ""
    table: Annotated[
        str, Setting("table services as host:port; several, as IP addresses, separated by commas")
    ] = "127.0.0.1:7433"
    table_ca: Annotated[
        str, Setting("certificates (PEM) to trust for it; empty: no TLS, on this machine only")
    ] = ""
    ledger: Annotated[
        str, Setting("ledger services, likewise; empty: no stakes are held, all ratings are equal")
    ] = ""
    ledger_ca: Annotated[str, Setting("certificates (PEM) to trust for it, likewise")] = ""
    issuers: Annotated[
        tuple[str, ...],
        Setting("who else signs players' tokens, as name=file (PEM or JWKS); empty: this machine's own"),
    ] = ()
    stays: Annotated[int, Setting("stay streams served at once", least=1)] = 20_000
    call_rate: Annotated[float, Setting("calls a second and player; 0 for no limit", least=0)] = 20.0
    create_rate: Annotated[
        float, Setting("rooms, tickets and reports made a second and player, likewise", least=0)
    ] = 2.0
    sign_in_rate: Annotated[float, Setting("sign-ins a second and address, likewise", least=0)] = 5.0
    operator_rate: Annotated[float, Setting("calls a second and operator, likewise", least=0)] = 200.0
    stranger_rate: Annotated[float, Setting("bad tokens a second and address, likewise", least=0)] = 50.0
    development: Annotated[
        bool, Setting("allow what must never be allowed where people play", hidden=True)
    ] = False
    insecure_entropy: Annotated[
        str, Setting("every id and secret follows from this text: never for real play", hidden=True)
    ] = ""


BURST_S = 4.0
"""A caller may save up the calls of so many seconds."""
