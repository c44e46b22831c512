"""Who sits and who looks on: watches that resume by their tokens, players who play by what they are told."""

import asyncio
import random
import time
import uuid
from collections import Counter
from collections.abc import Sequence

import grpc
from google.protobuf.message import Message

from services.pb.event.v1.event_pb2 import Cards, Difficulty, Pace, RuleOption, Seat, Spectators
from services.pb.table.v1 import table_service_pb2 as pb
from services.pb.table.v1 import view_pb2
from services.pb.table.v1.view_pb2 import TableView
from support.calls import RETRIED, Calls, Refused
from support.house import COMES_S

EASY, NORMAL = Difficulty.DIFFICULTY_EASY, Difficulty.DIFFICULTY_NORMAL
AT_ONCE = Pace(
    draw_ms=0, declare_ms=0, mutiny_ms=0, bury_ms=60_000, turn_ms=60_000, next_deal_ms=60_000, away_turns=3
)
OVER = (view_pb2.PHASE_OVER, view_pb2.PHASE_CLOSED)
MOVED_ON = {
    "STALE_VERSION",
    "WRONG_PHASE",
    "NOT_YOUR_TURN",
    "ALREADY_DONE",
    "ALREADY_PASSED",
    "TABLE_CLOSED",
}
"""Refusals which say that the table has moved on since it was looked at."""
DARED = {
    "NOT_A_DECLARATION",
    "NOT_STRONG_ENOUGH",
    "MUST_NOT_COUNTER_OWN",
    "ALREADY_SHOWN",
    "LOCKED",
    "MIXED_SUITS",
    "THROW_NOT_ALLOWED",
    "NO_MUTINY",
}
"""Refusals that a bold player must expect."""


def founding(
    preset: str = "classic-1d",
    seats: Sequence[str | int] = ("north", "east", "south", "west"),
    *,
    pace: Pace = AT_ONCE,
    spectators: Spectators.ValueType = Spectators.SPECTATORS_PUBLIC,
    **options: str,
) -> pb.CreateTableRequest:
    """The request that founds a table.

    Args:
        preset: the rules.
        seats: for each seat a player, a bot's difficulty, or an empty text.
        pace: the pace.
        spectators: who may look on.
        options: overrides as JSON.
    """
    return pb.CreateTableRequest(
        command_id=str(uuid.uuid4()),
        preset=preset,
        overrides=[RuleOption(name=name, value=value) for name, value in options.items()],
        seats=[
            Seat(seat=number, difficulty=held) if isinstance(held, int) else Seat(seat=number, player_id=held)
            for number, held in enumerate(seats)
            if held
        ],
        pace=pace,
        spectators=spectators,
    )


class Watching:
    """A watch that goes on by its resume token whenever it breaks.

    Attributes:
        steps: every update as it came, with its resume token: raw messages.
        resumes: the resume token of each step.
        starts: how many snapshots came.
        breaks: why it broke, each time: the status' reason or code.
        broke_at: when, each time: the monotonic clock.
        view_version: the newest version told of.
    """

    def __init__(
        self,
        calls: Calls,
        table_id: str,
        player: str,
        after: str = "",
        replica: int = 0,
        *,
        stay: bool = False,
    ) -> None:
        """Describe a watch.

        Args:
            calls: the replicas.
            table_id: the table.
            player: who watches.
            after: the resume token to begin with.
            replica: where to begin.
            stay: never go to another replica.
        """
        self._calls = calls
        self.table_id = table_id
        self.player = player
        self.after = after
        self.replica = replica
        self._stay = stay
        self.steps: list[bytes] = []
        self.resumes: list[str] = []
        self.starts = 0
        self.breaks: list[str] = []
        self.broke_at: list[float] = []
        self.version = 0
        self.to_act: tuple[int, ...] = ()
        self.over = False
        self.deals = 0
        self.news = asyncio.Condition()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> "Watching":
        """Begin."""
        self._task = asyncio.create_task(self.run())
        return self

    async def stop(self) -> None:
        """End; raises what ended it before."""
        assert self._task is not None
        self._task.cancel()
        (result,) = await asyncio.gather(self._task, return_exceptions=True)
        if isinstance(result, Exception):
            raise result

    async def run(self) -> None:
        """Watch until the match is over, resuming after every break.

        Raises:
            Refused: refused for good.
        """
        while not self.over:
            request = pb.WatchRequest(table_id=self.table_id, after=self.after)
            stream = self._calls.watch(request, self.player, self.replica)
            try:
                async for raw in stream:
                    self._calls.saw(self.player, raw)
                    await self.take(raw)
                    if self.over:
                        break
            except grpc.aio.AioRpcError as error:
                refused = self._calls.refusal(self.player, "Watch", error)
                self.breaks.append(refused.reason or refused.code.name)
                self.broke_at.append(time.monotonic())
                if refused.code not in RETRIED | {grpc.StatusCode.RESOURCE_EXHAUSTED}:
                    raise refused from None
            finally:
                stream.cancel()
            async with self.news:
                self.news.notify_all()
            if not self._stay:
                self.replica = (self.replica + 1) % len(self._calls.channels)
            await asyncio.sleep(random.uniform(0.02, 0.08))

    async def take(self, raw: bytes) -> None:
        """One message came."""
        message = pb.WatchResponse.FromString(raw)
        self.after = message.resume
        if message.HasField("heartbeat"):
            return
        if message.HasField("snapshot"):
            self.starts += 1
            self.to_act = tuple(message.snapshot.to_act)
            self.version = message.snapshot.version
            self.over = message.snapshot.phase in OVER
        else:
            self.steps.append(raw)
            self.resumes.append(message.resume)
            self.version = message.update.version
            self.to_act = tuple(message.update.to_act)
            for event in message.update.events:
                kind = event.WhichOneof("kind")
                self.over = self.over or kind in {"match_ended", "table_closed"}
                self.deals += kind == "deal_scored"
        async with self.news:
            self.news.notify_all()

    async def until(self, condition: object, within_s: float = COMES_S) -> None:
        """Wait until a condition of this watch holds.

        Raises:
            TimeoutError: it does not in time.
        """
        async with asyncio.timeout(within_s), self.news:
            await self.news.wait_for(condition)  # type: ignore[arg-type]


class Player:
    """Plays one seat by what the service shows and lists; settles every command before the next one.

    Attributes:
        watch: what this seat is told.
        moves: commands that were acknowledged.
        refused: the reasons of commands that were refused.
    """

    def __init__(
        self,
        calls: Calls,
        table_id: str,
        player: str,
        seat: int,
        rng: random.Random,
        after: str = "",
        *,
        bold: float = 0.0,
    ) -> None:
        """Sit down; see ``play``.

        Args:
            calls: the replicas.
            table_id: the table.
            player: the player.
            seat: the seat that it has.
            rng: makes its choices.
            after: where its watch begins.
            bold: how often it tries a declaration or a throw that may be refused.
        """
        self._calls = calls
        self._rng = rng
        self._bold = bold
        self.table_id = table_id
        self.player = player
        self.seat = seat
        self.watch = Watching(calls, table_id, player, after, rng.randrange(len(calls.channels)))
        self.moves = 0
        self.refused: Counter[str] = Counter()

    @property
    def _anywhere(self) -> int:
        return self._rng.randrange(len(self._calls.channels))

    async def play(self) -> None:
        """Play until the match is over.

        Raises:
            Refused: for a reason that a player who goes by what it is told must not meet.
        """
        self.watch.start()
        try:
            while not self.watch.over:
                looked = await self.act()
                async with self.watch.news:
                    while not self.watch.over and self.watch.version <= looked:
                        await self.watch.news.wait()
        finally:
            await self.watch.stop()

    async def act(self) -> int:
        """Look, and do what there is to do; the version that is done with."""
        if self.watch.to_act and self.seat not in self.watch.to_act:
            return self.watch.version
        view = await self.view(self.watch.version)
        if self.seat in view.to_act:
            await self.move(view)
        return view.version

    async def move(self, view: TableView, replica: int | None = None) -> int:
        """Do something where this seat may; the version that records it, 0 when it came too late."""
        for name, request in await self.choices(view):
            try:
                receipt = await self._calls.settle(
                    name, request, self.player, self._anywhere if replica is None else replica
                )
            except Refused as error:
                self.refused[error.reason] += 1
                if error.reason in MOVED_ON:
                    return 0
                shown_before = name == "Declare" and error.reason == "NOT_IN_HAND"
                if error.reason not in DARED and not shown_before:
                    error.add_note(f"{name} {request} at {view}")
                    raise
            else:
                self.moves += 1
                return receipt.version
        return 0

    async def view(self, version: int = 0) -> TableView:
        """The table as this seat sees it."""
        request = pb.GetViewRequest(table_id=self.table_id, min_version=version)
        answer = await self._calls.ask("GetView", request, self.player, self._anywhere)
        return answer.view  # type: ignore[no-any-return]

    def context(self, view: TableView) -> pb.CommandContext:
        """A new command's context."""
        command_id = str(uuid.UUID(int=self._rng.getrandbits(128)))
        return pb.CommandContext(table_id=self.table_id, command_id=command_id, version=view.version)

    async def choices(self, view: TableView) -> list[tuple[str, Message]]:
        """What to do, as method and request; each one is for when the one before it is refused."""
        context = self.context(view)
        match view.phase:
            case view_pb2.PHASE_SEATING | view_pb2.PHASE_SCORED:
                return [("Ready", pb.ReadyRequest(context=context, client_seed=self._rng.randbytes(8)))]
            case view_pb2.PHASE_DECLARING:
                return [*self._showing(view), ("Pass", pb.PassRequest(context=context))]
            case view_pb2.PHASE_MUTINY:
                call = ("CallMutiny", pb.CallMutinyRequest(context=context))
                return [call, ("Pass", pb.PassRequest(context=self.context(view)))]
            case view_pb2.PHASE_COUNTER:
                return [*self._counter(view), ("Pass", pb.PassRequest(context=context))]
            case view_pb2.PHASE_BURY:
                cards = self._rng.sample(sorted(view.hand), view.kitty_size)
                return [("Bury", pb.BuryRequest(context=context, cards=cards))]
            case view_pb2.PHASE_TRICKS:
                plays = await self._listed(view)
                if not plays:
                    return []
                cards = self._rng.choice(plays).cards
                return [*self._throw(view), ("Play", pb.PlayRequest(context=context, cards=cards))]
        return []

    async def _listed(self, view: TableView) -> Sequence[Cards]:
        """The plays that the service lists for the table as it was looked at; none when it has moved on."""
        request = pb.LegalPlaysRequest(table_id=self.table_id, cap=8)
        while True:
            listed = await self._calls.ask("LegalPlays", request, self.player, self._anywhere)
            if listed.version >= view.version:
                return listed.plays if listed.version == view.version else ()
            # This replica has not heard of it yet.
            await asyncio.sleep(0.02)

    def _showing(self, view: TableView) -> list[tuple[str, Message]]:
        """A declaration with cards of the level, if bold."""
        level = [card for card in view.hand if card <= 52 and (card - 1) % 13 == view.level - 2]
        if not level or self._rng.random() >= self._bold:
            return []
        card = max(level, key=level.count)
        cards = [card] * self._rng.randint(1, level.count(card))
        return [("Declare", pb.DeclareRequest(context=self.context(view), cards=cards))]

    def _counter(self, view: TableView) -> list[tuple[str, Message]]:
        """A counter with two cards of the level and their joker, or with two jokers, if there are any."""
        hand = list(view.hand)
        jokers = {suit: 53 + suit % 2 for suit in range(4)}
        held = [[joker] * 2 for joker in (53, 54) if hand.count(joker) == 2]
        for suit, joker in jokers.items():
            card = 13 * suit + view.level - 1
            if hand.count(card) == 2 and joker in hand:
                held.append([card, card, joker])
        return [("Counter", pb.CounterRequest(context=self.context(view), cards=cards)) for cards in held]

    def _throw(self, view: TableView) -> list[tuple[str, Message]]:
        """Two cards of one suit led together, if bold."""
        if view.trick or self._rng.random() >= self._bold:
            return []
        suit = (self._rng.choice(view.hand) - 1) // 13
        cards = [card for card in view.hand if (card - 1) // 13 == suit]
        if len(cards) < 2:
            return []
        chosen = self._rng.sample(cards, 2)
        return [("Play", pb.PlayRequest(context=self.context(view), cards=chosen))]


def seated(
    calls: Calls, table_id: str, names: Sequence[str], rng: random.Random, *, bold: float = 0.0
) -> list[Player]:
    """Players on the seats from 0 on."""
    return [Player(calls, table_id, name, seat, rng, bold=bold) for seat, name in enumerate(names)]


async def advance(players: Sequence[Player], phase: int, version: int = 1) -> TableView:
    """Play all seats, one command after another, until a phase comes or the match is over; the view then."""
    while True:
        view = await players[0].view(version)
        if view.phase == phase or view.phase in OVER:
            return view
        mover = players[view.to_act[0]]
        version = await mover.move(await mover.view(view.version)) or view.version
