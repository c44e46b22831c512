"""Somebody else's verifier: from services/game/README.md, the standard library and `cryptography`.

Only the recorded matches that it is tried on come from the project's own code.
"""

import hashlib
import hmac
import json
from functools import cache

import pytest
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from support.recorded import Recorder, event_of, rechained, short_match, versions_of

from services.game.local import PLAYERS


class Bad(Exception):
    def __init__(self, version, what):
        super().__init__(f"version {version}: {what}")
        self.version = version


# Protocol buffers by hand


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


@cache
def fields(data):
    """{field number: [values]}; a value is a number or bytes."""
    found, at = {}, 0
    while at < len(data):
        tag, at = varint(data, at)
        if tag & 7 == 0:
            value, at = varint(data, at)
        elif tag & 7 == 2:
            size, at = varint(data, at)
            value, at = data[at : at + size], at + size
            if len(value) != size:
                raise IndexError
        else:
            raise IndexError
        found.setdefault(tag >> 3, []).append(value)
    return found


def one(data, number, default=b""):
    return fields(data).get(number, [default])[0]


def numbers(data, number):
    """A repeated number in its packed form."""
    packed, found, at = b"".join(fields(data).get(number, [])), [], 0
    while at < len(packed):
        value, at = varint(packed, at)
        found.append(value)
    return found


# What the README says


def frame(*parts):
    return b"".join(len(part).to_bytes(4, "big") + part for part in parts)


def u64(number):
    return number.to_bytes(8, "big")


def words(label, seed, clients, table, deal):
    block = 0
    while True:
        message = frame(label, table, u64(deal), *clients) + u64(block)
        digest = hmac.new(seed, message, hashlib.sha256).digest()
        yield from (int.from_bytes(digest[i : i + 4], "big") for i in range(0, 32, 4))
        block += 1


def below(bound, stream):
    for word in stream:
        if word < 2**32 - 2**32 % bound:
            return word % bound
    raise AssertionError


def shuffled(seed, clients, table, deal, decks):
    deck = [card for card in range(1, 55) for _ in range(decks)]
    stream = words(b"shengji shuffle v1", seed, clients, table, deal)
    for last in range(len(deck) - 1, 0, -1):
        other = below(last + 1, stream)
        deck[last], deck[other] = deck[other], deck[last]
    return deck


KIND_D = {1, 2, 3, 4, 14, 15, 16, 19, 22}
"""The events whose commits are of kind ``d``, by their numbers in ``Event``."""


@cache
def digest(stored):
    return hashlib.sha256(stored).digest()


def check_chain(table, log, head):
    """Hashes and versions. Of two commits that do not fit, the later is bad if its own hash is wrong too."""
    for at, stored in enumerate(log):
        version = at + 1
        try:
            its_table, its_version, previous = one(stored, 1), one(stored, 2, 0), one(stored, 3)
        except IndexError:
            raise Bad(version, "no message") from None
        if its_table != table or its_version != version:
            raise Bad(version, "of another table or version")
        if previous != (digest(log[at - 1]) if at else b""):
            try:
                named = one(log[at + 1], 3) if at + 1 < len(log) else head
            except IndexError:
                named = digest(stored)
            raise Bad(version if at == 0 or named != digest(stored) else version - 1, "the chain is broken")
    if digest(log[-1]) != head:
        raise Bad(len(log), "not the head")
    newest, named = 0, False
    for version, stored in enumerate(log, 1):
        said = one(stored, 11, 0)
        named = named or said > 0
        if named and said != newest:
            raise Bad(version, "not the newest commit of kind d")
        if any(set(fields(event)) & KIND_D for event in fields(stored)[10]):
            newest = version


class Deal:
    """What one commitment leads to, until it is revealed."""

    def __init__(self, version, commitment):
        self.number = one(commitment, 1, 0)
        self.hash, self.salt, self.key_id = one(commitment, 2), one(commitment, 3), one(commitment, 4)
        self.sealed = [(version, 0, b"server_seed", 4, one(commitment, 6))]
        self.started = self.buried = None
        self.plays = []
        self.shown = []


def verify(table, log, head):
    """The number of deals that are right.

    Raises:
        Bad: with the first version that is wrong.
    """
    check_chain(table, log, head)
    deals, deal, rules = 0, None, {}
    for version, stored in enumerate(log, 1):
        for index, event in enumerate(fields(stored)[10]):
            [(kind, [body])] = fields(event).items()
            if kind == 1:
                rules = {one(o, 1).decode(): json.loads(one(o, 2)) for o in fields(one(body, 2))[3]}
            if deal and deal.number and kind not in (1, 4):
                note(deal, version, index, kind, body)
            reveal = {4: 2, 14: 10, 16: 2, 19: 2, 22: 5}.get(kind)
            if reveal and deal and reveal in fields(body):
                deals += check_deal(table, deal, version, one(body, reveal), rules)
                deal = None
            commitment = {1: 8, 4: 1, 14: 11, 19: 3, 22: 6}.get(kind)
            if commitment and commitment in fields(body):
                if deal is not None:
                    raise Bad(version, "a seed is not revealed")
                deal = Deal(version, one(body, commitment))
                deal.sealed[0] = (version, index, b"server_seed", 4, one(one(body, commitment), 6))
    return deals


def note(deal, version, index, kind, body):
    """Keeps what has to be looked at when the deal is revealed."""
    seat = one(body, 1, 0)
    if kind == 6:
        deal.started = (version, body)
        for audience, sealed in enumerate(fields(body)[9]):
            deal.sealed.append((version, index, b"hand", audience, sealed))
        for sealed in fields(body).get(10, []):
            deal.sealed.append((version, index, b"kitty", 4, sealed))
    elif kind == 7 and 4 in fields(body):
        deal.sealed.append((version, index, b"declared", 4, one(body, 4)))
    elif kind == 7:
        deal.shown.append((version, seat, numbers(body, 2)))
    elif kind in (10, 11):
        name = b"kitty_taken" if kind == 10 else b"buried"
        deal.sealed.append((version, index, name, seat, one(body, 3)))
    elif kind == 12:
        deal.plays.append((version, seat, numbers(body, 2)))
    elif kind == 14:
        deal.buried = (version, numbers(body, 3))
    elif kind in (22, 23):
        deal.shown.append((version, seat, numbers(body, 2)))


def check_deal(table, deal, version, reveal, rules):
    seed, keys = one(reveal, 2), fields(reveal).get(3, [])
    if one(reveal, 1, 0) != deal.number or digest(seed) != deal.hash or len(keys) != 5:
        raise Bad(version, "not the seed that was committed to")
    opened = [(*place, opened_seal(table, deal, keys, *place)) for place in deal.sealed]
    if opened[0][-1] != seed:
        raise Bad(deal.sealed[0][0], "another seed was sealed")
    if deal.started is None:
        return 0
    started, body = deal.started
    decks, kitty_size = rules["decks"], rules["kitty"]
    clients = fields(body)[6]
    deck = shuffled(seed, clients, table, deal.number, decks)
    first = one(body, 2, 0)
    if 3 not in fields(body) and first != below(
        4, words(b"shengji first drawer v1", seed, clients, table, deal.number)
    ):
        raise Bad(started, "another seat should draw first")
    dealt = len(deck) - kitty_size
    hands = [deck[(seat - first) % 4 : dealt : 4] for seat in range(4)]
    kitty = deck[dealt:]
    lying = sorted(kitty)
    for at, _, name, seat, _, plain in opened[1:]:
        cards = list(plain.rstrip(b"\0"))
        expected = {b"hand": sorted(hands[seat % 4]), b"kitty": kitty, b"kitty_taken": lying}.get(name, cards)
        if cards != expected:
            raise Bad(at, f"{name.decode()} is not what the seeds give")
        if name == b"buried":
            lying = cards
    play(deal, hands, opened)
    return 1


def opened_seal(table, deal, keys, version, index, name, audience, sealed):
    place = frame(b"shengji seal v1", table, u64(deal.number), deal.salt, deal.key_id,
                  index.to_bytes(4, "big"), name, bytes([audience]))  # fmt: skip
    if one(sealed, 1, 0) != audience:
        raise Bad(version, "sealed for another audience")
    try:
        return ChaCha20Poly1305(keys[audience]).decrypt(one(sealed, 2), one(sealed, 3), place)
    except (InvalidTag, ValueError):
        raise Bad(version, f"{name.decode()} does not open") from None


def play(deal, hands, opened):
    """Nobody shows, buries or plays a card that the seat does not hold; in the end no card is left."""
    hands = [list(hand) for hand in hands]
    steps = [(v, seat, cards, "shown") for v, seat, cards in deal.shown]
    steps += [(v, seat, cards, "laid") for v, seat, cards in deal.plays]
    lying = []
    for version, _, name, seat, _, plain in opened:
        cards = list(plain.rstrip(b"\0"))
        if name == b"kitty_taken":
            steps.append((version, seat, cards, "taken"))
        if name == b"buried":
            steps.append((version, seat, cards, "laid"))
            lying = cards
    if deal.buried and deal.buried[1] != lying:
        raise Bad(deal.buried[0], "other cards were buried")
    for version, seat, cards, what in sorted(steps, key=lambda step: step[0]):
        hand = hands[seat]
        if what == "taken":
            hand += cards
            continue
        for card in cards:
            if cards.count(card) > hand.count(card):
                raise Bad(version, "a card that the seat does not hold")
        if what == "laid":
            for card in cards:
                hand.remove(card)
    if deal.buried and any(hands):
        raise Bad(deal.buried[0], "cards were not played")


# The recorded matches


@pytest.fixture(scope="module")
def match():
    return short_match("for somebody else")


def check(log, match, head=None):
    return verify(match.table_id.encode(), log, head or digest(log[-1]))


def test_a_match_is_verified_by_the_readme_alone(match):
    assert check(match.log, match, match.head) == 2


@pytest.mark.parametrize(("rules", "options"), [("classic-2d", {}), ("classic-4d", {}), ("bigkitty-4d", {})])
def test_matches_by_other_rules_are_verified(rules, options):
    match = Recorder(rules, rules, deals=2, **options)
    match.found(PLAYERS)
    for expiring in (False, True):
        match.ready()
        match.deal(expiring)
    assert check(match.log, match) == 2
    assert versions_of(match.log, "declared")


def test_a_match_with_mutinies_and_counters_is_verified():
    match = Recorder("joker 41", "tournament-2d", deals=3, kitty=60)
    match.found(PLAYERS)
    while match.state.match.outcome is None:
        match.ready()
        match.deal(expiring=match.state.match.deals == 2)
    mutinies = versions_of(match.log, "mutiny_called")
    countered = versions_of(match.log, "countered")
    assert mutinies
    assert countered
    assert check(match.log, match) == 3 + len(mutinies)
    for version, change, what in (
        (mutinies[0], lambda e: e.mutiny_called.cards.__setitem__(0, 54), "does not hold"),
        (mutinies[0], lambda e: flip(e.mutiny_called.reveal, "server_seed"), "committed to"),
        (countered[0], lambda e: setattr(e.countered, "seat", (e.countered.seat + 1) % 4), "does not hold"),
    ):
        forged = rechained(match.log, lambda tail, change=change: change(tail[0].events[0]), version)
        with pytest.raises(Bad, match=what) as error:
            check(forged, match)
        assert error.value.version == version


def test_every_single_changed_byte_is_found_and_its_version_named(match):
    table, head, changed = match.table_id.encode(), match.head, 0
    for at, stored in enumerate(match.log):
        log = list(match.log)
        for place in range(len(stored)):
            log[at] = stored[:place] + bytes([stored[place] ^ 1 << place % 8]) + stored[place + 1 :]
            with pytest.raises(Bad) as error:
                verify(table, log, head)
            assert error.value.version == at + 1
            changed += 1
    assert changed == sum(map(len, match.log))


def flip(message, field):
    value = getattr(message, field)
    setattr(message, field, bytes([value[0] ^ 1]) + value[1:])


@pytest.mark.parametrize(
    ("kind", "change", "what"),
    [
        ("deal_scored", lambda e: flip(e.reveal, "server_seed"), "committed to"),
        ("deal_scored", lambda e: e.kitty.__setitem__(0, e.kitty[0] % 54 + 1), "other cards were buried"),
        ("deal_scored", lambda e: e.ClearField("reveal"), "not revealed"),
        ("deal_started", lambda e: flip(e.sealed_hands[2], "ciphertext"), "hand does not open"),
        ("deal_started", lambda e: flip(e.sealed_kitty, "nonce"), "kitty does not open"),
        ("deal_started", lambda e: e.sealed_hands.reverse(), "another audience"),
        ("deal_started", lambda e: setattr(e, "first_drawer", (e.first_drawer + 1) % 4), "draw first"),
        ("deal_started", lambda e: e.client_seeds.__setitem__(1, bytes(32)), "draw first|seeds give"),
        ("kitty_taken", lambda e: flip(e.sealed_cards, "ciphertext"), "kitty_taken does not open"),
        ("buried", lambda e: flip(e.sealed_cards, "nonce"), "buried does not open"),
        ("cards_played", lambda e: setattr(e, "seat", (e.seat + 1) % 4), "does not hold"),
        ("declared", lambda e: setattr(e, "seat", (e.seat + 1) % 4), "does not hold"),
    ],
)
def test_what_a_forger_changes_is_found_though_the_chain_holds(match, kind, change, what):
    version = versions_of(match.log, kind)[0]
    log = rechained(match.log, lambda tail: change(event_of(tail[0], kind)), version)
    with pytest.raises(Bad, match=what) as error:
        check(log, match)
    assert error.value.version == version
