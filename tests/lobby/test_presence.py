"""Who is online over all replicas, with beats that get lost, doubled and reordered."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.presence_world import Clock, World

from services.lobby import presence as module
from services.lobby.presence import BEAT_S, REMEMBERED_S, SILENCE_S
from services.shell.bus import Hear, MemoryBus

PLAYERS = [f"ply_{number:026}" for number in range(12)]


class LossyBus:
    """A bus that hands over, keeps for later, doubles or loses what is told, for each hearer by itself."""

    def __init__(self, seed: int) -> None:
        self.reliable = True
        self.heard: dict[int, Hear] = {}
        self._late: dict[int, list[bytes]] = {}
        self._chance = random.Random(seed)

    async def hear(self, topic: str, heard: Hear) -> None:
        self.heard[id(heard.__self__)] = heard  # type: ignore[attr-defined]

    async def tell(self, topic: str, news: bytes) -> None:
        for name, heard in list(self.heard.items()):
            waiting = self._late.setdefault(name, [])
            if self.reliable:
                heard(news)
                continue
            fate = self._chance.random()
            if fate < 0.4:
                continue
            waiting.append(news)
            if fate < 0.7:
                self._chance.shuffle(waiting)
                for late in waiting[: self._chance.randint(0, len(waiting))]:
                    heard(late)
                    if self._chance.random() < 0.5:
                        waiting.remove(late)

    def heal(self) -> None:
        """Hand over what is late, and lose nothing from now on."""
        self.reliable = True
        for name, heard in self.heard.items():
            for news in self._late.pop(name, ()):
                heard(news)


async def seconds(worlds: list[World], clock: Clock, passing: float) -> None:
    for _ in range(round(passing / BEAT_S)):
        clock.now += BEAT_S
        for world in worlds:
            await world.presence.beat()


async def join(world: World) -> World:
    """Have a replica hear the others; its beats are the test's."""
    await world.bus.hear("presence", world.presence.hear)
    return world


async def two() -> tuple[World, World]:
    bus, clock = MemoryBus(), Clock()
    return await join(World(bus=bus, clock=clock, seed=1)), await join(World(bus=bus, clock=clock, seed=2))


async def test_a_stay_here_is_online_at_once_and_elsewhere_within_a_beat() -> None:
    here, there = await two()
    await seconds([here, there], here.clock, 2)
    here.presence.enter(PLAYERS[0], "acme")
    assert here.presence.is_online(PLAYERS[0])
    assert not there.presence.is_online(PLAYERS[0])
    await seconds([here, there], here.clock, 1)
    for world in (here, there):
        assert world.presence.is_online(PLAYERS[0])
        assert world.presence.operator_of(PLAYERS[0]) == "acme"
        assert (world.presence.online("acme"), world.presence.online("")) == (1, 0)
        assert world.presence.absent_s(PLAYERS[0]) == 0


async def test_several_stays_are_one_player_until_the_last_ends() -> None:
    here, there = await two()
    for world in (here, here, there):
        world.presence.enter(PLAYERS[0], "")
    await seconds([here, there], here.clock, 1)
    assert here.presence.online("") == there.presence.online("") == 1
    here.presence.leave(PLAYERS[0])
    there.presence.leave(PLAYERS[0])
    await seconds([here, there], here.clock, 1)
    assert here.presence.is_online(PLAYERS[0])
    assert there.presence.is_online(PLAYERS[0])
    here.presence.leave(PLAYERS[0])
    await seconds([here, there], here.clock, 1)
    assert not here.presence.is_online(PLAYERS[0])
    assert not there.presence.is_online(PLAYERS[0])
    assert there.presence.operator_of(PLAYERS[0]) is None


async def test_absence_is_counted_from_when_somebody_went() -> None:
    here, there = await two()
    here.presence.enter(PLAYERS[0], "")
    await seconds([here, there], here.clock, 100)
    here.presence.leave(PLAYERS[0])
    await seconds([here, there], here.clock, 20)
    assert here.presence.absent_s(PLAYERS[0]) == 20
    assert there.presence.absent_s(PLAYERS[0]) == 19  # told a beat later


async def test_of_whom_nothing_is_known_absence_counts_from_the_start() -> None:
    here, _ = await two()
    assert here.presence.absent_s(PLAYERS[0]) == 0
    await seconds([here], here.clock, 7)
    assert here.presence.absent_s(PLAYERS[0]) == 7


async def test_a_new_replica_learns_who_is_online_within_two_beats() -> None:
    here = await join(World())
    here.presence.enter(PLAYERS[0], "")
    await seconds([here], here.clock, 60)
    there = await join(World(bus=here.bus, clock=here.clock, seed=2))
    await seconds([there, here], here.clock, 2)
    assert there.presence.is_online(PLAYERS[0])


async def test_a_silent_replica_is_gone_after_twelve_seconds() -> None:
    here, there = await two()
    here.presence.enter(PLAYERS[0], "")
    await seconds([here, there], here.clock, 7)
    here.presence.enter(PLAYERS[1], "")
    await seconds([here, there], here.clock, 1)
    await seconds([there], here.clock, SILENCE_S - 1)
    assert there.presence.is_online(PLAYERS[0])
    await seconds([there], here.clock, 1)
    assert not there.presence.is_online(PLAYERS[0])
    assert there.presence.absent_s(PLAYERS[0]) == SILENCE_S


async def test_a_replica_that_stops_says_so() -> None:
    here, there = await two()
    here.presence.enter(PLAYERS[0], "")
    await seconds([here, there], here.clock, 1)
    await here.presence.stop()
    assert not there.presence.is_online(PLAYERS[0])


async def test_whoever_was_cut_off_knows_of_no_absence() -> None:
    bus = LossyBus(1)
    world = World(bus=bus)
    await world.presence.start()
    try:
        await seconds([world], world.clock, 40)
        assert world.presence.absent_s(PLAYERS[0]) == 40
        hearer = bus.heard.popitem()
        await seconds([world], world.clock, 40)
        assert world.presence.absent_s(PLAYERS[0]) == 0
        bus.heard = dict([hearer])
        await seconds([world], world.clock, 5)
        assert world.presence.absent_s(PLAYERS[0]) <= 5
        await seconds([world], world.clock, 30)
        assert 30 <= world.presence.absent_s(PLAYERS[0]) <= 35
    finally:
        await world.presence.stop()


async def test_changes_are_told_once() -> None:
    here, there = await two()
    told: list[tuple[str, bool]] = []
    end = there.presence.on_change(lambda player, online: told.append((player, online)))
    here.presence.enter(PLAYERS[0], "")
    await seconds([here, there], here.clock, 20)
    here.presence.leave(PLAYERS[0])
    here.presence.enter(PLAYERS[0], "")  # within a beat: nobody elsewhere hears of it
    await seconds([here, there], here.clock, 20)
    assert told == [(PLAYERS[0], True)]
    end()
    here.presence.leave(PLAYERS[0])
    await seconds([here, there], here.clock, 1)
    assert told == [(PLAYERS[0], True)]


async def test_a_beat_that_comes_after_a_newer_one_changes_nothing() -> None:
    here, there = World(seed=1), World(seed=2)
    beats: list[bytes] = []
    await here.bus.hear("presence", beats.append)
    await seconds([here], here.clock, 1)
    here.presence.enter(PLAYERS[0], "")
    await seconds([here], here.clock, 1)
    here.presence.leave(PLAYERS[0])
    await seconds([here], here.clock, 1)
    everything, came, went = beats
    for beat, online in (
        (everything, False),
        (came, True),
        (went, False),
        (came, False),
        (everything, False),
    ):
        there.presence.hear(beat)
        assert there.presence.is_online(PLAYERS[0]) == online


@pytest.mark.parametrize(
    "news", [b"", b"[]", b"{}", b"\xff", b'{"from":"x","number":1,"came":[]}', b'{"from":"x","number":1}']
)
async def test_what_is_no_beat_is_logged_and_changes_nothing(news: bytes) -> None:
    world = await join(World())
    world.presence.hear(news)
    assert "bad_beat" in world.log.getvalue()
    assert world.presence.online("") == 0


async def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PLAYERS_MOST", 5)
    monkeypatch.setattr(module, "REPLICAS_MOST", 2)
    here = await join(World())
    for number in range(4):
        other = World(bus=here.bus, clock=here.clock, seed=10 + number)
        for player in PLAYERS:
            other.presence.enter(player + str(number), "")
        await other.presence.beat()
    assert here.presence.online("") == 10
    for player in PLAYERS:
        here.presence.enter(player, "")
        here.presence.leave(player)
    await here.presence.beat()
    assert len(here.presence._went) == 5
    await seconds([here], here.clock, REMEMBERED_S + SILENCE_S + 2)
    assert not here.presence._went


async def test_no_beat_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    here, there = await two()
    await here.bus.hear("presence", lambda news: sizes.append(len(news)))
    players = [f"ply_{number:026}" for number in range(20_000)]
    for player in players:
        here.presence.enter(player, "an-operator-with-a-long-name")
    await seconds([here, there], here.clock, 1)
    assert max(sizes) < 512 * 1024
    assert there.presence.online("an-operator-with-a-long-name") == 20_000
    for player in players:
        here.presence.leave(player)
    await seconds([here, there], here.clock, 1)
    assert there.presence.online("an-operator-with-a-long-name") == 0


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["enter", "leave", "second"]), st.integers(0, 2), st.integers(0, len(PLAYERS) - 1)
    ),
    max_size=60,
)


@settings(deadline=None, max_examples=60)
@given(steps=STEPS, seed=st.integers(0, 1 << 16), killed=st.booleans(), size=st.sampled_from([2, 4000]))
async def test_twelve_seconds_after_the_last_loss_all_know_the_same(
    steps: list[tuple[str, int, int]], seed: int, killed: bool, size: int
) -> None:
    kept = module.BEAT_PLAYERS
    module.BEAT_PLAYERS = size  # type: ignore[misc]
    try:
        bus, clock = LossyBus(seed), Clock()
        worlds = [await join(World(bus=bus, clock=clock, seed=seed + number)) for number in range(3)]
        bus.reliable = False
        here: list[list[str]] = [[], [], []]
        for what, replica, number in steps:
            if what == "second":
                await seconds(worlds, clock, 1)
            elif what == "enter":
                worlds[replica].presence.enter(PLAYERS[number], "ab"[number % 2])
                here[replica].append(PLAYERS[number])
            elif PLAYERS[number] in here[replica]:
                worlds[replica].presence.leave(PLAYERS[number])
                here[replica].remove(PLAYERS[number])
        if killed:
            dead = worlds.pop()
            here.pop()
            bus.heard.pop(id(dead.presence))
        bus.reliable = True
        await seconds(worlds, clock, SILENCE_S)
        truth = {player for players in here for player in players}
        for world in worlds:
            assert {player for player in PLAYERS if world.presence.is_online(player)} == truth
            for parity, operator in enumerate("ab"):
                assert world.presence.online(operator) == len(truth & set(PLAYERS[parity::2]))
            assert "bad_beat" not in world.log.getvalue()
    finally:
        module.BEAT_PLAYERS = kept  # type: ignore[misc]


async def test_a_guest_who_became_a_user_is_online_where_the_user_belongs() -> None:
    """The front end begins its new stay before it ends the old one, here or on another replica."""
    bus, clock = MemoryBus(), Clock()
    here, there, third = worlds = [World(bus=bus, clock=clock, seed=seed) for seed in range(3)]
    for world in worlds:
        await bus.hear(module.TOPIC, world.presence.hear)
    ann = PLAYERS[0]

    def told() -> set[tuple[str | None, int, int]]:
        found = [world.presence for world in worlds]
        return {(one.operator_of(ann), one.online(""), one.online("acme")) for one in found}

    here.presence.enter(ann, "")
    await seconds(worlds, clock, 2)
    assert told() == {("", 1, 0)}
    there.presence.enter(ann, "acme")
    await seconds(worlds, clock, 2)
    here.presence.leave(ann)
    await seconds(worlds, clock, 2)
    assert told() == {("acme", 0, 1)}
    there.presence.enter(ann, "globex")
    there.presence.leave(ann)
    await seconds(worlds, clock, 2)
    assert {world.presence.operator_of(ann) for world in worlds} == {"globex"}
    there.presence.leave(ann)
    await seconds(worlds, clock, 2)
    assert told() == {(None, 0, 0)}
    assert not third.presence.is_online(ann)
