import pytest
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from services.game import keys, seal
from services.game.entropy import SeededEntropy, SystemEntropy
from services.game.errors import MasterKeyLost, SealBroken
from services.game.keys import DealSeal, Keyring
from services.pb.event.v1.event_pb2 import (
    Buried,
    Cards,
    CardsPlayed,
    DealScored,
    DealStarted,
    DealVoided,
    Declared,
    Event,
    KittyTaken,
    MutinyCalled,
    Reveal,
    SeedCommitment,
    SeedCommitted,
    TableClosed,
    TableOpened,
)
from services.pb.log.v1.log_pb2 import Commit

TABLE = "tbl_01hf7yat00e02840r40m30e209"
KEYRING = Keyring({"k1": bytes(range(32))}, "k1")
STRANGER = Keyring()
SEAL = DealSeal(1, b"s" * 32, "k1")
SEED = b"seed" * 8


def commitment(deal=1, salt=b"s"):
    return SeedCommitment(deal=deal, commitment=bytes(32), salt=salt * 32, key_id="k1", server_seed=SEED)


def started(kitty=(9, 3, 7)):
    hands = [Cards(cards=[seat * 5 + n for n in range(1, 6)]) for seat in range(4)]
    return Event(deal_started=DealStarted(deal=1, hands=hands, kitty=Cards(cards=kitty)))


OPENED = Event(table_opened=TableOpened(creator_id="p", next_seed=commitment()))
TAKEN = Event(kitty_taken=KittyTaken(seat=2, cards=[3, 7, 9]))
BURIED = Event(buried=Buried(seat=3, cards=[1, 1, 54]))
DECLARED = Event(declared=Declared(seat=1, cards=[5], count=1))
PLAYED = Event(cards_played=CardsPlayed(seat=1, cards=[5]))


def sealed(events, current=SEAL, keyring=KEYRING, entropy=None, declarations=False):
    return seal.seal_events(
        events,
        table_id=TABLE,
        current=current,
        keyring=keyring,
        entropy=entropy or SystemEntropy(),
        sealed_declarations=declarations,
    )


def opened(events, keyring, current=SEAL, table_id=TABLE):
    return seal.open_events(events, table_id=table_id, current=current, keyring=keyring, version=7)


@pytest.mark.parametrize("event", [OPENED, started(), TAKEN, BURIED, DECLARED, PLAYED], ids=str)
def test_what_is_sealed_can_be_opened(event):
    before = event.SerializeToString()
    for declarations in (False, True):
        [stored] = sealed([event], declarations=declarations)
        [read] = opened([stored], KEYRING)
        assert stripped(read) == event
    assert event.SerializeToString() == before


def stripped(event):
    """Without the seals."""
    copy = Event()
    copy.CopyFrom(event)
    copy.table_opened.next_seed.ClearField("sealed_server_seed") if copy.HasField("table_opened") else None
    for field in ("deal_started", "kitty_taken", "buried", "declared"):
        if copy.HasField(field):
            for name in ("sealed_hands", "sealed_kitty", "sealed_cards"):
                part = getattr(copy, field)
                if name in part.DESCRIPTOR.fields_by_name:
                    part.ClearField(name)
    return copy


def test_nothing_secret_is_stored_in_the_clear():
    for event in sealed([OPENED, started(), TAKEN, BURIED, DECLARED], current=None, declarations=True):
        assert stripped(event) in [
            Event(table_opened=TableOpened(creator_id="p", next_seed=SeedCommitment(
                deal=1, commitment=bytes(32), salt=b"s" * 32, key_id="k1"))),
            Event(deal_started=DealStarted(deal=1, kitty=Cards())),
            Event(kitty_taken=KittyTaken(seat=2)),
            Event(buried=Buried(seat=3)),
            Event(declared=Declared(seat=1, count=1)),
        ]  # fmt: skip


def test_a_reader_opens_its_own_part_and_no_other():
    [stored] = sealed([started()])
    for seat in range(4):
        mine = STRANGER.with_keys(TABLE, SEAL, {seat: KEYRING.deal_key(TABLE, SEAL, seat)})
        [read] = opened([stored], mine)
        for other in range(4):
            expected = list(started().deal_started.hands[other].cards) if other == seat else []
            assert list(read.deal_started.hands[other].cards) == expected
        assert not read.deal_started.kitty.cards
    [read] = opened([stored], STRANGER)
    assert [list(hand.cards) for hand in read.deal_started.hands] == [[], [], [], []]


def test_cards_keep_their_order():
    event = started(kitty=(9, 3, 7))
    [read] = opened(sealed([event]), KEYRING)
    assert list(read.deal_started.kitty.cards) == [9, 3, 7]
    assert list(read.deal_started.hands[3].cards) == [16, 17, 18, 19, 20]


@pytest.mark.parametrize(("count", "size"), [(1, 16), (8, 16), (16, 16), (17, 32), (48, 48)])
def test_the_size_of_a_seal_tells_no_card(count, size):
    for card in (1, 54):
        [stored] = sealed([Event(buried=Buried(seat=0, cards=[card] * count))])
        assert len(stored.buried.sealed_cards.ciphertext) == size + 16


def test_without_a_kitty_there_is_no_seal_of_it():
    [stored] = sealed([started(kitty=())])
    assert not stored.deal_started.HasField("sealed_kitty")
    [read] = opened([stored], KEYRING)
    assert not read.deal_started.kitty.cards


def test_declarations_are_sealed_where_the_rules_hide_them():
    assert sealed([DECLARED]) == [DECLARED]
    [hidden] = sealed([DECLARED], declarations=True)
    assert hidden.declared.sealed_cards.audience == 4
    assert not hidden.declared.cards
    assert hidden.declared.count == 1


def test_what_is_authenticated_is_what_the_readme_says():
    [_, stored] = sealed([PLAYED, TAKEN])
    box = stored.kitty_taken.sealed_cards
    parts = [b"shengji seal v1", TABLE.encode(), (1).to_bytes(8, "big"), b"s" * 32, b"k1",
             (1).to_bytes(4, "big"), b"kitty_taken", b"\2"]  # fmt: skip
    place = b"".join(len(part).to_bytes(4, "big") + part for part in parts)
    plaintext = ChaCha20Poly1305(KEYRING.deal_key(TABLE, SEAL, 2)).decrypt(box.nonce, box.ciphertext, place)
    assert plaintext == bytes([3, 7, 9]) + bytes(13)


def broken(change, event=TAKEN, current=SEAL, keyring=KEYRING):
    stored = sealed([event])
    change(stored)
    with pytest.raises(SealBroken, match="version 7: event") as error:
        opened(stored, keyring, current)
    return error.value.detail


def test_a_changed_seal_is_refused():
    def flip(name):
        def change(stored):
            box = stored[0].kitty_taken.sealed_cards
            setattr(box, name, bytes([getattr(box, name)[0] ^ 1]) + getattr(box, name)[1:])

        return change

    for name in ("nonce", "ciphertext"):
        assert "does not open" in broken(flip(name))
    assert "does not open" in broken(lambda s: setattr(s[0].kitty_taken.sealed_cards, "nonce", b""))
    assert "does not open" in broken(lambda s: setattr(s[0].kitty_taken.sealed_cards, "ciphertext", b"x"))
    assert "is not sealed" in broken(lambda s: s[0].kitty_taken.ClearField("sealed_cards"))
    assert "another audience" in broken(lambda s: setattr(s[0].kitty_taken.sealed_cards, "audience", 4))
    assert "another audience" in broken(lambda s: setattr(s[0].kitty_taken, "seat", 1))
    assert "in the clear" in broken(lambda s: s[0].kitty_taken.cards.append(3), keyring=STRANGER)
    assert "no seed" in broken(lambda s: None, current=None)
    assert "more than four" in broken(lambda s: s[0].deal_started.sealed_hands.add(), started())
    assert "another audience" in broken(lambda s: s[0].deal_started.sealed_hands.reverse(), started())


def test_a_seal_opens_only_in_its_place():
    two_hands = sealed([started()])[0].deal_started.sealed_hands
    assert two_hands[0].audience != two_hands[1].audience
    shifted = [PLAYED, *sealed([TAKEN])]
    with pytest.raises(SealBroken, match="event 1: kitty_taken does not open"):
        opened(shifted, KEYRING)
    for current in (SEAL._replace(deal=2), SEAL._replace(salt=b"t" * 32)):
        assert "does not open" in broken(lambda s: None, current=current)
    with pytest.raises(SealBroken, match="does not open"):
        opened(sealed([TAKEN]), KEYRING, table_id=TABLE[:-1] + "0")
    [stored] = sealed([Event(kitty_taken=KittyTaken(seat=3, cards=[1, 2, 3]))])
    swapped = Event(buried=Buried(seat=3, sealed_cards=stored.kitty_taken.sealed_cards))
    with pytest.raises(SealBroken, match="buried does not open"):
        opened([swapped], KEYRING)


def test_seals_that_hold_no_cards_are_refused():
    with pytest.raises(SealBroken, match="no card"):
        opened(sealed([Event(buried=Buried(seat=0, cards=[55]))]), KEYRING)


def test_nonces_never_repeat():
    events = sealed([OPENED, started(), TAKEN, BURIED], current=None)
    again = sealed([OPENED, started(), TAKEN, BURIED], current=None)
    boxes = []
    for opening, start, taken, buried in (events, again):
        boxes += [opening.table_opened.next_seed.sealed_server_seed, start.deal_started.sealed_kitty]
        boxes += [
            *start.deal_started.sealed_hands,
            taken.kitty_taken.sealed_cards,
            buried.buried.sealed_cards,
        ]
    assert len({box.nonce for box in boxes}) == len(boxes) == 16


def test_seeded_entropy_repeats_a_commit_byte_for_byte():
    entropy = SeededEntropy("x")
    once, twice = (
        [
            e.SerializeToString()
            for e in sealed([OPENED, started()], None, entropy=entropy.for_commit(TABLE, 1))
        ]
        for _ in range(2)
    )
    assert once == twice


def test_a_deal_that_ends_reveals_its_keys():
    reveal = Reveal(deal=1, server_seed=SEED)
    ends = [
        Event(seed_committed=SeedCommitted(next_seed=commitment(1, b"t"), discarded=reveal)),
        Event(deal_scored=DealScored(next_seed=commitment(2, b"t"), reveal=reveal)),
        Event(deal_voided=DealVoided(next_seed=commitment(2, b"t"), reveal=reveal)),
        Event(mutiny_called=MutinyCalled(next_seed=commitment(2, b"t"), reveal=reveal)),
        Event(table_closed=TableClosed(reveal=reveal)),
    ]
    for end in ends:
        [stored] = sealed([end])
        assert tuple(keys.reveal_in(stored).keys) == keys.deal_keys(bytes(range(32)), TABLE, SEAL)
        reader = keys.with_revealed(STRANGER, TABLE, [stored], SEAL)
        assert stripped(opened(sealed([TAKEN]), reader)[0]) == TAKEN
        assert opened([stored], reader)[0] is not stored


def test_a_lost_master_key_is_named():
    other = Keyring({"k2": bytes(32)}, "k2")
    with pytest.raises(MasterKeyLost, match="'k1'"):
        sealed([TAKEN], keyring=other)
    with pytest.raises(MasterKeyLost, match="'k1'"):
        sealed([Event(table_closed=TableClosed(reveal=Reveal(deal=1, server_seed=SEED)))], keyring=other)
    given_up = Event(table_closed=TableClosed(reveal=Reveal(deal=1)))
    assert sealed([given_up], keyring=other) == [given_up]


def test_decisions_without_their_secrets_are_not_stored():
    with pytest.raises(ValueError, match="no hand to seal"):
        sealed([Event(deal_started=DealStarted(deal=1))])
    with pytest.raises(ValueError, match="before a seed"):
        sealed([TAKEN], current=None)


def test_a_commit_without_secrets_is_not_copied():
    plain = Commit(table_id=TABLE, version=7, events=[PLAYED])
    assert seal.open_commit(plain, current=SEAL, keyring=KEYRING) is plain
    hidden = Commit(table_id=TABLE, version=7, events=[PLAYED, *sealed([TAKEN])])
    with pytest.raises(SealBroken, match="version 7"):
        seal.open_commit(hidden, current=SEAL, keyring=KEYRING)
    good = Commit(table_id=TABLE, version=7, recorded_at_us=5, events=sealed([PLAYED, TAKEN]))
    read = seal.open_commit(good, current=SEAL, keyring=KEYRING)
    assert (read.version, read.recorded_at_us) == (7, 5)
    assert [stripped(event) for event in read.events] == [PLAYED, TAKEN]


# Snapshots


def snapshot(state=b"state", **changes):
    place = {
        "table_id": TABLE,
        "version": 5,
        "commit_hash": b"h" * 32,
        "fold_version": 2,
        "stream_sequence": 99,
    }
    return seal.seal_snapshot(state, **{**place, **changes}, keyring=KEYRING, entropy=SystemEntropy())


@pytest.mark.parametrize("state", [b"", b"x", b"x\0\0", b"s" * 508, b"s" * 509, b"s" * 5000])
def test_snapshots_open_and_hide_their_size(state):
    sealed_state = snapshot(state)
    assert seal.open_snapshot(sealed_state, KEYRING) == state
    assert len(sealed_state.ciphertext) % 512 == 16
    assert state[:20] not in sealed_state.ciphertext or not state.strip(b"x\0")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("table_id", TABLE[:-1] + "0"),
        ("version", 6),
        ("commit_hash", b"i" * 32),
        ("fold_version", 3),
        ("nonce", bytes(12)),
        ("nonce", b""),
        ("ciphertext", bytes(528)),
        ("ciphertext", b""),
    ],
)
def test_snapshots_are_bound_to_their_place(field, value):
    moved = snapshot()
    setattr(moved, field, value)
    with pytest.raises(SealBroken, match="snapshot does not open"):
        seal.open_snapshot(moved, KEYRING)


def test_snapshots_of_a_lost_key_are_named():
    other = snapshot()
    other.key_id = "k2"
    with pytest.raises(MasterKeyLost, match="'k2'"):
        seal.open_snapshot(other, KEYRING)
    with pytest.raises(MasterKeyLost):
        seal.open_snapshot(snapshot(), STRANGER)
