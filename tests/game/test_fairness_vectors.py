"""The test vectors of the README's "Fairness and verification" are what the code computes."""

from pathlib import Path

from services.game import chain, ids, keys, seal, shuffle
from services.game.entropy import SeededEntropy
from services.game.framing import frame
from services.game.keys import DealSeal, Keyring
from services.pb.event.v1.event_pb2 import Event, KittyTaken
from services.rules.cards import card_texts

README = Path(shuffle.__file__).with_name("README.md")
MASTER = bytes(range(32))
SERVER_SEED = bytes(range(32, 64))
CLIENT_SEEDS = [b"north", b"", b"south", bytes(range(64, 96))]
SALT = bytes(range(96, 128))
TABLE = ids.TableId.new(1_700_000_000_000, bytes(range(10)))


class FixedNonce:
    """An entropy that gives the nonce of the vector."""

    def bytes(self, n):
        return bytes(range(200, 200 + n))


def vectors():
    """Every vector as (name, value)."""
    clients = [shuffle.padded_client_seed(seed) for seed in CLIENT_SEEDS]
    deck = shuffle.deck_order(SERVER_SEED, clients, TABLE, 3, 2)
    first = shuffle.first_drawer(SERVER_SEED, clients, TABLE, 3)
    dealt = shuffle.deal_cards(deck, first, 25)
    deal_seal = DealSeal(3, SALT, "k1")
    yield "frame('ab', '')", frame(b"ab", b"").hex()
    yield "table id", TABLE
    yield "its subject, kind m", ids.subject(TABLE, "m")
    yield "server seed", SERVER_SEED.hex()
    yield "its commitment", shuffle.commitment(SERVER_SEED).hex()
    for seat, seed in enumerate(clients):
        yield f"client seed {seat}", seed.hex()
    yield "deal", "3"
    yield "deck, 2 decks", " ".join(card_texts(deck))
    yield "deck, 1 deck", " ".join(card_texts(shuffle.deck_order(SERVER_SEED, clients, TABLE, 3, 1)))
    yield "first drawer", str(first)
    yield "hand of seat 0 as drawn, 25 each", " ".join(card_texts(dealt.hands[0]))
    yield "kitty", " ".join(card_texts(dealt.kitty))
    yield "master key k1", MASTER.hex()
    yield "salt", SALT.hex()
    for audience, key in enumerate(keys.deal_keys(MASTER, TABLE, deal_seal)):
        yield f"deal key {audience}", key.hex()
    yield from seal_vectors(deal_seal)
    yield "command check of 'body'", keys.command_check(Keyring({"k1": MASTER}), "k1", TABLE, b"body").hex()
    yield "seeded entropy 'x', version 7", SeededEntropy("x").for_commit(TABLE, 7).bytes(32).hex()
    yield "hash of the bytes 'commit'", chain.commit_hash(b"commit").hex()


def seal_vectors(deal_seal):
    passed = Event()
    taken = Event(kitty_taken=KittyTaken(seat=2, cards=[1, 1, 54]))
    events = seal.seal_events(
        [passed, taken],
        table_id=TABLE,
        current=deal_seal,
        keyring=Keyring({"k1": MASTER}),
        entropy=FixedNonce(),
        sealed_declarations=False,
    )
    box = events[1].kitty_taken.sealed_cards
    index = bytes([0, 0, 0, 1])
    deal = bytes([0] * 7 + [3])
    place = frame(seal.SEAL_LABEL, TABLE.encode(), deal, SALT, b"k1", index, b"kitty_taken", b"\2")
    yield "sealed: kitty_taken of seat 2, event 1, cards", "S2 S2 BJ"
    yield "sealed: authenticated with it", place.hex()
    yield "sealed: nonce", box.nonce.hex()
    yield "sealed: ciphertext", box.ciphertext.hex()


def test_the_vectors_in_the_readme_are_right():
    expected = "\n".join(f"{name}: {value}" for name, value in vectors())
    stated = README.read_text("utf-8").split("```text vectors\n")[1].split("\n```")[0]
    assert stated == expected
