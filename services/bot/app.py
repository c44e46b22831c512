"""The bot process: put together, run, and taken apart in order."""

import asyncio

from prometheus_client import CollectorRegistry

from services.bot.client import TableClient, Tokens
from services.bot.config import BotConfig
from services.bot.doorbells import Doorbells
from services.bot.metrics import BotMetrics
from services.bot.player import Player
from services.bot.tables import Tables
from services.rules.options import RULES_VERSION
from services.shell import metrics as shell_metrics
from services.shell import server
from services.shell.broker import Broker
from services.shell.channel import open_channel
from services.shell.keys import signing_key
from services.shell.log_jetstream import JetStreamLog
from services.shell.logs import Log
from services.shell.process import distribution_version

SERVICE = "shengji.bot"
"""The service's name in health checks."""


async def serve(config: BotConfig) -> None:
    """Run the bot service until SIGTERM or SIGINT.

    Raises:
        ConfigError: a setting that cannot be.
        BrokerError: NATS cannot be used.
    """
    log = Log("bot", config.log_level).adopt_libraries()
    stopped = server.stop_signals(log, supervised=config.supervised)
    registry = CollectorRegistry()
    shell_metrics.build_info(registry, version=distribution_version(), rules_version=str(RULES_VERSION))
    metrics_port = shell_metrics.export(registry, config.metrics)
    health = await server.start((), (SERVICE,), config.listen)
    broker = await Broker.connect(config.nats, "bot")
    bots = Bots(config, broker, registry, log)
    bots.start()
    host = config.listen.rpartition(":")[0]
    log.info("serving", address=f"{host}:{health.port}", metrics_port=metrics_port or 0)
    try:
        await stopped.wait()
    finally:
        await health.health.enter_graceful_shutdown()
        await bots.stop()
        await health.server.stop(0)
        await broker.close()
        log.info("stopped")


class Bots:
    """The working parts of a bot service, on a connection to NATS."""

    def __init__(self, config: BotConfig, broker: Broker, registry: CollectorRegistry, log: Log) -> None:
        """Put them together; nothing runs yet.

        Raises:
            ConfigError: the table service's address would need TLS, or its certificates cannot be read.
            KeyFileError: the issuer's key cannot be used.
        """
        metrics = BotMetrics(registry)
        self._channel = open_channel(config.table, config.table_ca)
        tokens = Tokens(signing_key(config.data, config.bot_issuer), config.bot_issuer)
        player = Player(TableClient(self._channel, tokens), metrics, log)
        self.tables = Tables(
            player,
            JetStreamLog(broker),
            metrics,
            log,
            kept=config.bot_tables,
            parallel=config.bot_parallel,
            think_s=config.think_ms / 1000,
        )
        self._doorbells = Doorbells(broker, self.tables, metrics, log)

    def start(self) -> None:
        """Begin to play."""
        self._doorbells.start()

    async def stop(self) -> None:
        """Finish what is under way and give back the rest."""
        await self._doorbells.stop()
        await self.tables.stop()
        await self._channel.close()


def run(config: BotConfig) -> None:
    """Run the service in an event loop of its own."""
    asyncio.run(serve(config))
