"""Operators: their keys, their users, and that nobody sees another's."""

import pytest
from support.identity import AWAY, HOME, Clock, Desk, device, reason, refusal

from services.lobby.members import OPERATORS_MOST, Members
from services.lobby.operators import KEYS_MOST, OperatorError
from services.lobby.records import place_key, player_key
from services.lobby.store import Write
from services.pb.lobby.v1.stored_pb2 import PlaceRecord, PlayerRecord
from services.rules.reasons import Reason
from services.shell.keys import signing_key
from services.shell.log_store import Unavailable, Why
from services.shell.tokens import sign


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
async def desk(tmp_path, clock):
    desk = Desk(tmp_path, clock)
    for name in ("acme", "other-2"):
        await desk.operators.add(name)
    return desk


@pytest.fixture
def other(tmp_path, clock, desk):
    """A second replica on the same store."""
    return Desk(tmp_path, clock, desk.store, seed=2)


# ------------------------------------------------------------------------------------------------- API keys


async def test_a_key_tells_its_operator_on_every_replica(desk, other):
    key = await desk.operators.add("third")
    assert key.startswith("opk_third_")
    assert await other.keys.authenticate(key, HOME) == "third"
    kept = b"".join(entry.value for entry in desk.store._entries.values())
    assert key.partition(".")[2].encode() not in kept


async def test_a_wrong_key_is_nobodys_and_slows_down_who_tries(desk, other):
    key = await desk.operators.new_key("acme")
    head, _, secret = key.partition(".")
    odd = ("", "opk_", "opk_acme.x", "opk_acme_1", f"{head}.", f"opk_ACME_1.{secret}", key[4:], "opk_*_1.x")
    for text in odd:
        assert await reason(desk.keys.authenticate(text, AWAY)) is Reason.UNAUTHENTICATED
    for replica in (desk, other, desk, other, desk):
        assert await reason(replica.keys.authenticate(f"{head}.x{secret}", AWAY)) is Reason.UNAUTHENTICATED
    refused = await refusal(other.keys.authenticate(key, AWAY))
    assert (refused.reason, refused.retry_after_s) == (Reason.RATE_LIMITED, 1.0)
    assert await other.keys.authenticate(key, HOME) == "acme"


async def test_the_secret_of_one_key_is_no_secret_of_another(desk):
    one, two = await desk.operators.new_key("acme"), await desk.operators.new_key("acme")
    mixed = one.partition(".")[0] + "." + two.partition(".")[2]
    assert await reason(desk.keys.authenticate(mixed, HOME)) is Reason.UNAUTHENTICATED
    foreign = two.replace("acme", "other-2")
    assert await reason(desk.keys.authenticate(foreign, HOME)) is Reason.UNAUTHENTICATED


async def test_keys_come_and_go(desk):
    key = await desk.operators.new_key("acme")
    key_id = key.removeprefix("opk_").partition(".")[0]
    await desk.operators.drop_key("acme", key_id)
    await desk.operators.drop_key("acme", key_id)
    assert await reason(desk.keys.authenticate(key, HOME)) is Reason.UNAUTHENTICATED
    for _ in range(KEYS_MOST - 1):
        await desk.operators.new_key("acme")
    with pytest.raises(OperatorError, match="drop one"):
        await desk.operators.new_key("acme")


async def test_a_suspended_operator_is_not_served(desk):
    key = await desk.operators.new_key("acme")
    await desk.operators.suspend("acme")
    refused = await refusal(desk.keys.authenticate(key, HOME))
    assert (refused.reason, refused.detail["detail"]) == (Reason.UNAUTHENTICATED, "the operator is suspended")
    await desk.operators.suspend("acme", False)
    assert await desk.keys.authenticate(key, HOME) == "acme"


async def test_operators_are_listed_and_named_once(desk):
    assert [record.name for record in await desk.operators.list()] == ["acme", "other-2"]
    for name in ("acme", "x", "A", "a_b", "a.b", "*", "x" * 33):
        with pytest.raises(OperatorError):
            await desk.operators.add(name)
    for doing in (desk.operators.new_key, desk.operators.suspend):
        with pytest.raises(OperatorError, match="no operator"):
            await doing("nobody")


# ---------------------------------------------------------------------------------------------------- users


async def test_a_user_is_founded_once_and_keeps_the_name_unless_told(desk, other):
    first = await desk.user("acme", "u 1", name="Ann")
    again = await other.user("acme", "u 1")
    assert (first.founded, again.founded) == (True, False)
    assert first.player == again.player
    assert (first.player.operator, first.player.user_id, first.player.guest) == ("acme", "u 1", False)
    assert desk.identity(first.tokens).operator == "acme"
    assert (await desk.user("acme", "u 1", name="Anna")).player.name == "Anna"
    assert (await desk.user("other-2", "u 1")).player.player_id != first.player.player_id
    renewed = await other.refresh(first.tokens.refresh_token)
    assert other.identity(renewed).operator == "acme"


@pytest.mark.parametrize("user_id", ["", "x" * 129, "a\nb", "\x00"])
async def test_a_user_id_that_cannot_be(desk, user_id):
    refused = await refusal(desk.user("acme", user_id))
    assert (refused.reason, refused.detail["field"]) == (Reason.BAD_INPUT, "user_id")


@pytest.mark.parametrize("realm", ["", "acme"])
async def test_a_guest_becomes_a_user_and_loses_nothing(desk, other, realm):
    guest = await desk.guest(realm)
    record = PlayerRecord.FromString((await desk.store.get(player_key(guest.player.player_id))).value)
    record.muted.append("ply_x")
    entry = await desk.store.get(player_key(record.player_id))
    await desk.store.commit([Write(player_key(record.player_id), record.SerializeToString(), entry.revision)])
    signed = await other.user("acme", "u1", guest.tokens.access_token)
    assert not signed.founded
    assert signed.player.player_id == guest.player.player_id
    assert (signed.player.name, signed.player.muted) == (guest.player.name, ["ply_x"])
    assert (signed.player.operator, signed.player.user_id, signed.player.guest) == ("acme", "u1", False)
    again = await desk.user("acme", "u1", guest.tokens.access_token)
    assert again.player == signed.player
    renewed = await desk.refresh(guest.tokens.refresh_token)
    assert desk.identity(renewed).operator == "acme"
    assert (await desk.user("acme", "u1")).player == signed.player


async def test_whose_guest_it_is_must_be_proved(desk, tmp_path, clock):
    guest = await desk.guest()
    foreign = await desk.guest("other-2")
    bad = [
        ("x", Reason.SIGN_IN_FAILED),
        (guest.tokens.access_token + "x", Reason.SIGN_IN_FAILED),
        (guest.tokens.refresh_token, Reason.SIGN_IN_FAILED),
        (foreign.tokens.access_token, Reason.UNKNOWN_PLAYER),
        (sign(signing_key(tmp_path, "local"), "local", "ply_dev", now=clock.now), Reason.UNKNOWN_PLAYER),
        (sign(signing_key(tmp_path, "bots"), "bots", "bot:x:1", now=clock.now), Reason.UNKNOWN_PLAYER),
    ]
    for token, why in bad:
        assert await reason(desk.user("acme", "u1", token)) is why
    clock.now += 15 * 60
    assert await reason(desk.user("acme", "u1", guest.tokens.access_token)) is Reason.SIGN_IN_FAILED
    assert (await desk.user("acme", "u1")).founded


async def test_who_is_somebody_already_is_not_taken(desk):
    user = await desk.user("acme", "u1")
    guest = await desk.guest()
    assert await reason(desk.user("acme", "u1", guest.tokens.access_token)) is Reason.ALREADY_LINKED
    assert await reason(desk.user("acme", "u2", user.tokens.access_token)) is Reason.ALREADY_LINKED
    housed = await desk.device(device())
    assert await reason(desk.user("acme", "u2", housed.tokens.access_token)) is Reason.ALREADY_LINKED
    own = await desk.device(device("phone-0002"), operator="acme")
    linked = await desk.user("acme", "u2", own.tokens.access_token)
    assert (linked.player.player_id, linked.player.devices) == (own.player.player_id, 1)
    assert (await desk.accounts.get(guest.player.player_id)) == guest.player


@pytest.mark.parametrize(
    ("place", "word"),
    [(PlaceRecord(room_id="rom_1"), "room"), (PlaceRecord(ticket_id="tkt_1"), "search")],
)
async def test_a_guest_who_is_somewhere_is_not_taken(desk, place, word):
    guest = await desk.guest()
    key = place_key(guest.player.player_id)
    (revision,) = await desk.store.commit([Write(key, place.SerializeToString(), 0)])
    refused = await refusal(desk.user("acme", "u1", guest.tokens.access_token))
    assert (refused.reason, refused.detail["place"]) == (Reason.ELSEWHERE, word)
    await desk.store.commit([Write(key, b"", revision)])
    assert (await desk.user("acme", "u1", guest.tokens.access_token)).player.user_id == "u1"


async def test_a_guest_who_goes_somewhere_meanwhile_is_not_taken(desk, other):
    guest = await desk.guest()
    key = place_key(guest.player.player_id)

    class Meanwhile:
        """The guest enters a room between reading and writing."""

        entered = False

        async def get(self, asked):
            return await desk.store.get(asked)

        async def commit(self, writes):
            if not self.entered:
                self.entered = True
                await desk.store.commit([Write(key, PlaceRecord(room_id="rom_1").SerializeToString(), 0)])
            return await desk.store.commit(writes)

    other.users._deps = other.deps._replace(store=Meanwhile())
    assert await reason(other.user("acme", "u1", guest.tokens.access_token)) is Reason.ELSEWHERE
    assert (await desk.accounts.get(guest.player.player_id)).operator == ""


async def test_an_operator_sees_its_own_players_and_nobody_elses(desk):
    user = (await desk.user("acme", "u1")).player
    guest = (await desk.guest("acme")).player
    housed = (await desk.guest()).player
    foreign = (await desk.user("other-2", "u1")).player
    assert await desk.users.get("acme", user_id="u1") == user
    assert await desk.users.get("acme", player_id=guest.player_id) == guest
    for hidden in (
        desk.users.get("acme", user_id="u9"),
        desk.users.get("acme"),
        desk.users.get("acme", player_id=housed.player_id),
        desk.users.get("acme", player_id=foreign.player_id),
        desk.sessions.end_all(foreign.player_id, "acme"),
        desk.sessions.end_all(housed.player_id, "acme"),
    ):
        assert await reason(hidden) is Reason.UNKNOWN_PLAYER


async def test_an_operator_signs_its_player_out(desk, other):
    signed = await desk.user("acme", "u1")
    await other.sessions.end_all(signed.player.player_id, "acme")
    assert await reason(desk.refresh(signed.tokens.refresh_token)) is Reason.SIGN_IN_FAILED
    assert await other.refresh((await desk.user("acme", "u1")).tokens.refresh_token)


async def test_players_are_listed_in_pages_in_the_order_of_their_founding(desk, other, clock):
    founded = []
    for number in range(7):
        clock.now += 1
        founded.append((await (desk, other)[number % 2].user("acme", f"u{number}")).player)
    clock.now += 1
    late = (await other.guest("acme")).player
    await desk.user("other-2", "u0")
    pages, token = [], ""
    while True:
        page, token = await desk.users.list("acme", 3, token)
        pages.append(list(page))
        if not token:
            break
    assert pages == [founded[:3], founded[3:6], [founded[6], late]]
    clock.now += 1
    later = (await other.user("acme", "u8")).player
    page, token = await desk.users.list("acme", 100, late.player_id)
    assert (list(page), token) == ([later], "")
    for size, bad in ((101, ""), (1, "x"), (1, "ply_*")):
        assert await reason(desk.users.list("acme", size, bad)) is Reason.BAD_INPUT


async def test_a_list_that_could_not_be_read_is_read_the_next_time(desk):
    user = (await desk.user("acme", "u1")).player

    class Away:
        """A store that cannot be read at first."""

        tries = 0

        async def follow(self, prefix, listener):
            self.tries += 1
            if self.tries == 1:
                raise Unavailable(Why.NO_ANSWER)
            return await desk.store.follow(prefix, listener)

    members = Members(Away())
    with pytest.raises(Unavailable):
        await members.after("acme", "", 1)
    assert await members.after("acme", "", 1) == ([user.player_id], False)
    await members.stop()


async def test_only_so_many_operators_are_followed(desk):
    members = Members(desk.store)
    for number in range(OPERATORS_MOST + 5):
        assert await members.after(f"op-{number}", "", 1) == ([], False)
    assert len(desk.store._followers) == OPERATORS_MOST
    await members.stop()
    assert not desk.store._followers
