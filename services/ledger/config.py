"""What the ledger service can be told, beside what every service is told."""

from dataclasses import dataclass
from typing import Annotated

from services.shell.config import ServiceConfig, Setting


@dataclass(frozen=True, kw_only=True)
class LedgerConfig(ServiceConfig):
    """Settings of the ledger service."""

    listen: Annotated[str, Setting("address of the ledger's gRPC server; port 0 takes a free one")] = (
        "127.0.0.1:7435"
    )
    tls_cert: Annotated[str, Setting("certificate chain (PEM); required unless only loopback is served")] = ""
    tls_key: Annotated[str, Setting("its private key (PEM)")] = ""
    issuers: Annotated[
        tuple[str, ...],
        Setting("who signs players' tokens, as name=file (PEM or JWKS); empty: this machine's own"),
    ] = ()
    service_issuers: Annotated[tuple[str, ...], Setting("who signs tokens for `svc:…` only, likewise")] = ()
    database: Annotated[
        str,
        Setting("sqlite+aiosqlite:///FILE or postgresql+asyncpg://…; empty: DATA/ledger.db", secret=True),
    ] = ""
    opening_grant: Annotated[int, Setting("chips of a new player", least=0, most=10**12)] = 10_000
    table: Annotated[
        str, Setting("table services as host:port; several, as IP addresses, separated by commas")
    ] = "127.0.0.1:7433"
    table_ca: Annotated[
        str, Setting("certificates (PEM) to trust for it; empty: no TLS, on this machine only")
    ] = ""
    query_rate: Annotated[float, Setting("questions a second and player; 0 for no limit", least=0)] = 20.0
    stranger_rate: Annotated[float, Setting("bad tokens a second and address, likewise", least=0)] = 50.0

    @property
    def database_url(self) -> str:
        """Where the database is."""
        return self.database or f"sqlite+aiosqlite:///{self.data / 'ledger.db'}"
