import hmac

import pytest

from services.game import keys
from services.game.errors import MasterKeyLost
from services.game.keys import DealSeal, Keyring
from services.pb.event.v1.event_pb2 import (
    CardsPlayed,
    DealScored,
    DealVoided,
    Event,
    Reveal,
    SeedCommitment,
    SeedCommitted,
    TableClosed,
    TableOpened,
)

TABLE = "tbl_01hf7yat00e02840r40m30e209"
MASTER = bytes(range(32))
KEYRING = Keyring({"k1": MASTER, "k2": bytes(32)}, "k1")
SEAL = DealSeal(1, b"s" * 32, "k1")


def commitment(deal, salt=b"s", key_id="k1"):
    return SeedCommitment(deal=deal, commitment=bytes(32), salt=salt * 32, key_id=key_id)


def framed(*parts):
    return b"".join(len(part).to_bytes(4, "big") + part for part in parts)


def hkdf(master, salt, info):
    """RFC 5869 with one block, by hand."""
    return hmac.digest(hmac.digest(salt or bytes(32), master, "sha256"), info + b"\1", "sha256")


def test_deal_keys_are_hkdf_of_the_master_key():
    for audience, key in enumerate(keys.deal_keys(MASTER, TABLE, SEAL)):
        info = framed(b"shengji deal key v1", TABLE.encode(), (1).to_bytes(8, "big"), bytes([audience]))
        assert key == hkdf(MASTER, b"s" * 32, info)
        assert KEYRING.deal_key(TABLE, SEAL, audience) == key


def test_every_deal_audience_salt_table_and_master_has_its_own_key():
    made = {
        *keys.deal_keys(MASTER, TABLE, SEAL),
        *keys.deal_keys(MASTER, TABLE, SEAL._replace(deal=2)),
        *keys.deal_keys(MASTER, TABLE, SEAL._replace(salt=b"t" * 32)),
        *keys.deal_keys(MASTER, TABLE[:-1] + "0", SEAL),
        *keys.deal_keys(bytes(32), TABLE, SEAL),
        keys.snapshot_key(KEYRING, "k1", TABLE),
        keys.snapshot_key(KEYRING, "k2", TABLE),
    }
    assert len(made) == 27


def test_a_reader_has_only_the_keys_that_were_revealed_to_it():
    stranger = Keyring()
    assert stranger.deal_key(TABLE, SEAL, 0) is None
    seat = stranger.with_keys(TABLE, SEAL, {2: b"x" * 32})
    assert seat.deal_key(TABLE, SEAL, 2) == b"x" * 32
    assert seat.deal_key(TABLE, SEAL, 0) is None
    assert seat.deal_key(TABLE, SEAL._replace(salt=b"t" * 32), 2) is None
    assert seat.deal_key(TABLE[:-1] + "0", SEAL, 2) is None
    assert stranger.deal_key(TABLE, SEAL, 2) is None
    with pytest.raises(MasterKeyLost, match="'k1'"):
        keys.reveal_keys(seat, TABLE, SEAL)


def test_keyrings_never_show_keys():
    text = repr(
        KEYRING.with_keys(TABLE, SEAL._replace(key_id="k9"), {0: b"secretsecretsecretsecretsecret!!"})
    )
    assert text == "Keyring(masters: k1, k2; revealed: 1)"
    assert repr(Keyring()) == "Keyring(masters: none; revealed: 0)"


@pytest.mark.parametrize(
    ("masters", "current"), [({"k": b"short"}, "k"), ({"k": bytes(32)}, "j"), (None, "j")]
)
def test_bad_master_keys_are_refused(masters, current):
    with pytest.raises(ValueError, match="master key"):
        Keyring(masters, current)


def test_commands_are_checked_by_body_and_table():
    check = keys.command_check(KEYRING, "k1", TABLE, b"body")
    assert len(check) == 8
    assert keys.is_same_command(KEYRING, TABLE, b"body", check)
    assert not keys.is_same_command(KEYRING, TABLE, b"Body", check)
    assert not keys.is_same_command(KEYRING, TABLE[:-1] + "0", b"body", check)
    assert not keys.is_same_command(Keyring(), TABLE, b"body", check)
    rotated = Keyring({"k1": MASTER, "k2": bytes(32)}, "k2")
    assert keys.command_check(rotated, "k2", TABLE, b"body") != check
    assert keys.is_same_command(rotated, TABLE, b"body", check)


def story():
    """A founding, a change of seats, a deal scored, a deal given up, the end; each with its reveal."""

    def reveal(deal, byte):
        return Reveal(deal=deal, server_seed=bytes(32), keys=[bytes([byte + a]) * 32 for a in range(5)])

    return [
        Event(table_opened=TableOpened(next_seed=commitment(1, b"a"))),
        Event(seed_committed=SeedCommitted(next_seed=commitment(1, b"b"), discarded=reveal(1, 10))),
        Event(cards_played=CardsPlayed(seat=1)),
        Event(deal_scored=DealScored(next_seed=commitment(2, b"c"), reveal=reveal(1, 20))),
        Event(deal_voided=DealVoided(next_seed=commitment(3, b"d"), reveal=Reveal(deal=2))),
        Event(table_closed=TableClosed(reveal=reveal(3, 30))),
    ]


def test_the_newest_commitment_counts():
    current, salts = None, []
    for event in story():
        current = keys.seal_after(event, current)
        salts.append(current and current.salt[:1])
    assert salts == [b"a", b"b", b"b", b"c", b"d", None]
    assert keys.seal_after(Event(deal_scored=DealScored(deal=9)), SEAL) is None


def test_each_reveal_ends_the_deal_seal_before_it():
    assert [(seal.deal, seal.salt[:1], reveal.deal) for seal, reveal in keys.reveals(story())] == [
        (1, b"a", 1),
        (1, b"b", 1),
        (2, b"c", 2),
        (3, b"d", 3),
    ]
    reader = keys.with_revealed(Keyring(), TABLE, story())
    assert reader.deal_key(TABLE, DealSeal(1, b"a" * 32, "k1"), 4) == bytes([14]) * 32
    assert reader.deal_key(TABLE, DealSeal(1, b"b" * 32, "k1"), 0) == bytes([20]) * 32
    assert reader.deal_key(TABLE, DealSeal(2, b"c" * 32, "k1"), 0) is None
    assert reader.deal_key(TABLE, DealSeal(3, b"d" * 32, "k1"), 3) == bytes([33]) * 32


def test_the_first_reveal_counts():
    events = story()
    again = Event(table_closed=TableClosed(reveal=Reveal(deal=1, keys=[b"?" * 32] * 5)))
    reader = keys.with_revealed(Keyring(), TABLE, events)
    reader = keys.with_revealed(reader, TABLE, [again], DealSeal(1, b"a" * 32, "k1"))
    assert reader.deal_key(TABLE, DealSeal(1, b"a" * 32, "k1"), 4) == bytes([14]) * 32


def test_a_reveal_of_malformed_keys_adds_nothing():
    events = story()
    events[1].seed_committed.discarded.keys[2] = b"short"
    reader = keys.with_revealed(Keyring(), TABLE, events)
    assert reader.deal_key(TABLE, DealSeal(1, b"a" * 32, "k1"), 0) is None
