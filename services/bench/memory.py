"""What an open table costs a table process in memory."""

import asyncio
import dataclasses
import time
from collections.abc import Sequence
from random import Random
from typing import Final

from services.bench.figures import Bar, Figure
from services.bench.filler import Message, fill
from services.bench.matches import Match, new_table_id
from services.bench.rig import ENTROPY, Rig, Service, rig
from services.bench.scale import Scale
from services.bench.stored import snapshot_message
from services.game import chain
from services.game.ids import TableId, stream_name, subject
from services.pb.table.v1.table_service_pb2 import GetViewRequest
from services.rules.presets import preset
from services.shell.broker import Broker, ensure_streams

LINE: Final = "memory"
FEW: Final = 100
MANY: Final = 10_000
_WARM: Final = 100
"""Tables opened before the first count, so that caches and pools are there."""
_AT_ONCE: Final = 16
_AHEAD_US: Final = 3_600_000_000
_SETTLE_S: Final = 2.0


async def memory(scale: Scale) -> list[Figure]:
    """Resident memory of one table process with 100 and 10,000 tables open, in mid-deal and idle."""
    many = scale.of(MANY)
    async with rig() as made:
        tables = await _store(made, _WARM + many)
        scale.say(f"{len(tables):,} tables stored")
        service = await made.table(open_tables=2 * MANY, idle_s=3600)
        await _open(made, service, tables[:_WARM])
        base = await _resident_kb(service)
        await _open(made, service, tables[_WARM : _WARM + FEW])
        few = await _resident_kb(service)
        await _open(made, service, tables[_WARM + FEW :])
        full = await _resident_kb(service)
    note = f"{base / 1024:.0f} MiB with the {_WARM} tables opened before, {full / 1024:.0f} MiB with all"
    return [
        Figure(
            LINE,
            f"resident memory per open idle table, of {many:,}",
            "kB",
            ((full - base) / many,),
            Bar("<=", 30),
            note=note,
        ),
        Figure(LINE, f"the same, of the first {FEW}", "kB", ((few - base) / FEW,), Bar("<=", 30)),
        Figure(LINE, f"the same, of those from {FEW} to {many:,}", "kB", ((full - few) / (many - FEW),)),
    ]


async def _store(made: Rig, count: int) -> list[TableId]:
    """Tables in mid-deal: of each its last commit and a snapshot, which is all that a load reads."""
    rng = Random(LINE)
    match = Match(
        new_table_id(rng), preset("classic-2d"), ENTROPY, made.keyring, time.time_ns() // 1000 + _AHEAD_US
    )
    deal = match.deal()
    while match.state.version < 80:
        next(deal)
    state, last = match.state, chain.decode(match.local.stored[-1])
    commits: list[Message] = []
    snapshots: list[Message] = []
    sequences: dict[str, int] = {}
    tables = []
    for _ in range(count):
        table_id = new_table_id(rng)
        stream = stream_name(table_id)
        sequences[stream] = sequences.get(stream, 0) + 1
        last.table_id = table_id
        payload = chain.encode(last)
        own = state._replace(founding=dataclasses.replace(state.founding, table_id=table_id))
        commits.append(Message(subject(table_id, "m"), payload))
        snapshots.append(snapshot_message(own, payload, sequences[stream], made.keyring))
        tables.append(table_id)
    broker = await Broker.connect(made.nats.url, "bench")
    await ensure_streams(broker)
    await broker.close()
    await fill(made.nats, [*commits, *snapshots])
    return tables


async def _open(made: Rig, service: Service, tables: Sequence[TableId]) -> None:
    """Have the service load tables."""
    call, waiting = service.call("GetView"), iter(tables)

    async def some() -> None:
        for table_id in waiting:
            await call(GetViewRequest(table_id=table_id).SerializeToString(), metadata=made.metadata[0])

    await asyncio.gather(*(some() for _ in range(_AT_ONCE)))


async def _resident_kb(service: Service) -> float:
    await asyncio.sleep(_SETTLE_S)
    return service.process.memory_info().rss / 1024
