"""Nobody is told a card that is not theirs to know: every byte sent to every kind of viewer is looked at."""

from collections import Counter

from google.protobuf.descriptor import FieldDescriptor
from support.serving import Caller, Game, Refused, founding

from services.game import chain
from services.game.evolve import evolve
from services.game.keys import Keyring, seal_of
from services.game.seal import open_commit
from services.game.state import Dealt
from services.pb.event.v1.event_pb2 import SPECTATORS_PUBLIC
from services.shell.keys import master_keys
from services.shell.log_jetstream import JetStreamLog

SPECTATOR = 4


def fields(message, path=()):
    """Every field that is set, as (path, value), repeated ones one by one."""
    for descriptor, value in message.ListFields():
        values = value if descriptor.is_repeated else [value]
        for one in values:
            here = (*path, descriptor)
            if descriptor.type == FieldDescriptor.TYPE_MESSAGE:
                yield from fields(one, here)
            else:
                yield here, one


def cards_in(message):
    """Every card in a message, with the names of the fields that lead to it."""
    for path, value in fields(message):
        last = path[-1]
        if last.enum_type is not None and last.enum_type.name == "Card":
            yield ".".join(step.name for step in path), value


def bytes_in(message):
    for path, value in fields(message):
        if path[-1].type == FieldDescriptor.TYPE_BYTES:
            yield ".".join(step.name for step in path), value


class Truth:
    """What is public and what is secret at each version, from the log opened with the master key."""

    def __init__(self, stored, keyring):
        self.public = {}
        self.seeds = {}
        self.declarer = None
        state, seen = None, Counter()
        for payload in stored:
            commit = open_commit(chain.decode(payload), current=seal_of(state), keyring=keyring)
            state = evolve(state, commit)
            for event in commit.events:
                seen = self._tell(event, seen)
            self.public[commit.version] = Counter(seen)
            seed = state.phase.deal.seed if isinstance(state.phase, Dealt) else state.next_seed
            self.seeds[commit.version] = seed.server_seed

    def _tell(self, event, seen):
        match event.WhichOneof("kind"):
            case "deal_started":
                self.hands = [Counter(hand.cards) for hand in event.deal_started.hands]
                self.kitty = Counter(event.deal_started.kitty.cards)
                return Counter()
            case "cards_played":
                return seen | Counter(event.cards_played.attempted) | Counter(event.cards_played.cards)
            case "declared":
                return seen | Counter(event.declared.cards)
            case "declaring_closed":
                return seen | Counter([event.declaring_closed.turned_card])
            case "kitty_taken":
                self.declarer = event.kitty_taken.seat
            case "deal_scored":
                return Counter(range(55))
        return seen


async def test_every_byte_to_every_viewer(one, broker, data):
    game = Game([one])
    await game.found(founding(spectators=SPECTATORS_PUBLIC))
    viewers = [*game.callers, Caller(data, "eve")]
    watches = [viewer.watch(one, game.table_id) for viewer in viewers]
    said = [[] for _ in viewers]
    refused = []
    leader = await game.to_tricks()
    for _ in range(20):
        view = await game.view(leader)
        (seat,) = view.to_act
        for number, viewer in enumerate(viewers):
            said[number].append(await viewer.view(one, game.table_id))
        plays = await game.legal(seat, cap=1)
        for other in range(4):
            if other != seat:
                try:
                    await game.do(other, "Play", view.version, cards=plays.plays[0].cards)
                except Refused as error:
                    refused.append(error)
        await game.do(seat, "Play", view.version, cards=plays.plays[0].cards)
    await game.play_deal((await game.view(0)).to_act[0])
    for number, watch in enumerate(watches):
        said[number].extend(await watch.until(game.version))
        watch.stop()

    assert {error.reason for error in refused} == {"NOT_YOUR_TURN"}
    assert not any(error.info.metadata for error in refused)
    masters = master_keys(data)
    stored = [commit.payload for commit in await JetStreamLog(broker).read(game.table_id)]
    truth = Truth(stored, Keyring(masters, list(masters)[-1]))
    sealed = {
        value
        for payload in stored
        for name, value in bytes_in(chain.decode(payload))
        if "ciphertext" in name or "nonce" in name
    }
    for audience, messages in enumerate(said):
        for message in messages:
            version = next(value for path, value in fields(message) if path[-1].name == "version")
            own = Counter() if audience == SPECTATOR else truth.hands[audience].copy()
            if audience == truth.declarer:
                own += truth.kitty
            allowed = truth.public[version] | own
            for name, card in cards_in(message):
                assert allowed[card], f"audience {audience} is told {card} in {name} at version {version}"
            assert truth.seeds[version] not in message.SerializeToString()
            assert not sealed & {value for _, value in bytes_in(message)}


async def test_the_test_can_see_a_leak(one, broker, data, monkeypatch):
    """With views that redact nothing, the walk above finds other players' cards."""
    monkeypatch.setattr("services.game.views.redact", lambda event, *_: event)
    game = Game([one])
    await game.found(founding(spectators=SPECTATORS_PUBLIC))
    watch = Caller(data, "eve").watch(one, game.table_id)
    await game.deal()
    messages = await watch.until(game.version)
    names = {name for message in messages for name, _ in cards_in(message)}
    assert "update.events.deal_started.hands.cards" in names
    watch.stop()
