"""Whole worlds of tables as logs whose chains hold, in memory."""

from random import Random

from services.bench.ledger_logs import Message, Mix, World
from services.game import chain
from services.game.ids import STREAMS
from services.ledger.archiver import note_closed
from services.ledger.audit import TableLog
from services.ledger.ratings import project
from services.pb.log.v1.log_pb2 import Commit

GRANT = 1000
MIX = Mix(people=10, stakes=(0, 7, 50, 90), parallel=3, options=0.5, escapes=0.1, bots=0.1, deals=4)
PROJECTIONS = [project, note_closed]


def chained(messages):
    """A world's messages as whole logs: versions without gaps, each bound to the one before."""
    made, last = [], {}
    for message in messages:
        commit = Commit.FromString(message.stored)
        before = last.get(message.table_id)
        commit.version = 1 if before is None else Commit.FromString(before).version + 1
        commit.prev_hash = b"" if before is None else chain.commit_hash(before)
        commit.previous_d = commit.version - 1
        stored = last[message.table_id] = chain.encode(commit)
        made.append(Message(message.stream, message.sequence, message.table_id, stored, commit))
    return made


class LogsInMemory:
    """The logs that the messages are."""

    def __init__(self, messages):
        self.messages = messages

    async def tables(self):
        return sorted({message.table_id for message in self.messages})

    async def log(self, table_id):
        mine = [message for message in self.messages if message.table_id == table_id]
        sequences = [message.sequence for message in mine]
        return TableLog([message.stored for message in mine], sequences, sequences[-1])

    async def created(self):
        return dict.fromkeys(range(STREAMS), "")


def world(seed=3, mix=MIX, deals=50):
    return chained(World(Random(seed), mix).messages(deals))
