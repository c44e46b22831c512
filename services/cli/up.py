"""`shengji up`: the house, kept running for clients until Ctrl-C."""

import asyncio
import os
import signal
from pathlib import Path

import click

from services.cli.data import DataInUse, Running, announce, default_data, held
from services.cli.house import HouseOptions, open_house
from services.shell.nats_server import NatsServerError
from services.shell.supervisor import ChildDied


@click.command(short_help="Run everything on this machine for clients, until Ctrl-C.")
@click.option(
    "--data",
    type=click.Path(path_type=Path),
    default=None,
    help="Folder to keep [$SHENGJI_DATA, else $XDG_DATA_HOME/shengji].",
)
@click.option(
    "--listen", default="127.0.0.1:7433", show_default=True, help="Address of the gRPC API, loopback only."
)
@click.option(
    "--lobby-listen", default="127.0.0.1:7434", show_default=True, help="Address of the lobby, likewise."
)
@click.option(
    "--ledger-listen", default="127.0.0.1:7435", show_default=True, help="Address of the ledger, likewise."
)
@click.option(
    "--founders",
    type=click.Choice(["services", "all"]),
    default="services",
    show_default=True,
    help="Who founds tables: the lobby, or players too.",
)
@click.option(
    "--think-ms", type=click.IntRange(min=0), default=600, show_default=True, help="How long bots think."
)
def up(
    data: Path | None, listen: str, lobby_listen: str, ledger_listen: str, founders: str, think_ms: int
) -> None:
    """Run everything on this machine for clients until Ctrl-C, then drain.

    Players sign in at the lobby, meet there and are told their table: `shengji play` in another terminal does
    it. What is kept in the folder is there again at the next start.
    """
    if os.environ.get("SHENGJI_INSECURE_ENTROPY"):
        raise click.UsageError("SHENGJI_INSECURE_ENTROPY is for `shengji demo --seed` alone")
    folder = data or default_data()
    options = HouseOptions(
        data=folder,
        table_listen=listen,
        lobby_listen=lobby_listen,
        ledger_listen=ledger_listen,
        founders=founders,
        think_ms=think_ms,
        master_keys=os.environ.get("SHENGJI_MASTER_KEYS", ""),
    )
    try:
        with held(folder):
            asyncio.run(_run(options))
    except (DataInUse, ChildDied, NatsServerError) as error:
        raise click.ClickException(str(error)) from None


async def _run(options: HouseOptions) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()

    def told() -> None:
        if stop.is_set():
            os._exit(1)
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, told)
    async with open_house(options) as house:
        announce(options.data, Running(os.getpid(), "up", house.nats, house.table, house.lobby, house.ledger))
        click.echo(f"The lobby is served at {house.lobby}, tables at {house.table} (gRPC),")
        click.echo(f"chips, results and ratings at {house.ledger}.")
        click.echo(f"Data: {options.data}. Play: shengji play, in another terminal.")
        click.echo("Ctrl-C stops everything in order.")
        dead = asyncio.create_task(house.supervisor.watch())
        stopped = asyncio.create_task(stop.wait())
        done, _ = await asyncio.wait({dead, stopped}, return_when=asyncio.FIRST_COMPLETED)
        for task in {dead, stopped} - done:
            task.cancel()
        click.echo("Stopping…")
        if dead in done:
            dead.result()
