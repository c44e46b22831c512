"""What the bot service can be told, beside what every service is told."""

from dataclasses import dataclass
from typing import Annotated

from services.shell.config import ServiceConfig, Setting


@dataclass(frozen=True, kw_only=True)
class BotConfig(ServiceConfig):
    """Settings of the bot service."""

    table: Annotated[
        str, Setting("table services as host:port; several, as IP addresses, separated by commas")
    ] = "127.0.0.1:7433"
    table_ca: Annotated[
        str, Setting("certificates (PEM) to trust for it; empty: no TLS, on this machine only")
    ] = ""
    listen: Annotated[str, Setting("address of the bot service's health checks")] = "127.0.0.1:0"
    bot_issuer: Annotated[str, Setting("issuer of bots' tokens; its key is in DATA/keys")] = "bots"
    think_ms: Annotated[
        int, Setting("least time from a table's change to a bot's answer, milliseconds", least=0, most=60_000)
    ] = 0
    bot_tables: Annotated[int, Setting("tables kept in memory", least=1)] = 20_000
    bot_parallel: Annotated[int, Setting("tables served at once", least=1, most=4096)] = 64
