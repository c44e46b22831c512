"""Which players an operator has, when many operators ask at once."""

import asyncio

from services.lobby.members import OPERATORS_MOST, Members
from services.lobby.records import member_key
from services.lobby.store import Write
from services.lobby.store_memory import MemoryStore
from services.pb.lobby.v1.stored_pb2 import UserRecord


class Slow:
    """A store that takes a while to tell what there is."""

    def __init__(self, store):
        self._store = store

    async def follow(self, prefix, listener):
        await asyncio.sleep(0.02)
        return await self._store.follow(prefix, listener)


async def test_no_operator_is_cut_off_by_many_others_that_ask_at_once():
    store, names = MemoryStore(), [f"op{number}" for number in range(2 * OPERATORS_MOST)]
    for name in names:
        record = UserRecord(player_id=f"ply_{name}").SerializeToString()
        await store.commit([Write(member_key(name, f"ply_{name}"), record, 0)])
    members = Members(Slow(store))
    asked = await asyncio.gather(*(members.after(name, "", 10) for name in names), return_exceptions=True)
    assert asked == [([f"ply_{name}"], False) for name in names]
    await members.after(names[0], "", 10)
    assert len(members._rolls) <= OPERATORS_MOST
    await members.stop()
