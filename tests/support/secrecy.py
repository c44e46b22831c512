"""What each receiver may know, worked out from the log once its deals are over, against what was sent.

Nothing here asks the service's own redaction: every field that can hold cards or bytes is walked, whatever
message it stands in, and a field that is not foreseen fails.
"""

import base64
import binascii
import json
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from google.protobuf.message import Message
from google.rpc.error_details_pb2 import ErrorInfo
from google.rpc.status_pb2 import Status

from services.game import chain
from services.game.draw import cards_of_deal
from services.game.evolve import evolve
from services.game.keys import Keyring, seal_of, with_revealed
from services.game.seal import open_commit
from services.game.state import Bury, Dealt, Declaring, Table, Tricks
from services.game.wire import cards_to_wire
from services.pb.event.v1.event_pb2 import Event
from services.pb.log.v1.log_pb2 import Commit
from services.pb.table.v1 import table_service_pb2 as pb
from services.pb.table.v1.view_pb2 import TableView, Update
from services.rules.cards import CARD_TEXTS

PUBLIC = {
    "cards_played.cards",
    "cards_played.attempted",
    "throw_refused.cards",
    "declaring_closed.turned_card",
    "declaring_closed.opened.cards",
    "deal_scored.kitty",
}
"""Fields of events with cards that everybody is told."""
PUBLIC_BYTES = {
    *(f"{kind}.next_seed.{name}" for kind in ("table_opened", "seed_committed", "deal_scored", "deal_voided")
      for name in ("commitment", "salt")),
    *(f"{kind}.{name}" for kind in ("deal_scored.reveal", "table_closed.reveal", "seed_committed.discarded")
      for name in ("server_seed", "keys")),
    "deal_started.client_seeds",
}  # fmt: skip
"""Likewise with bytes."""


class Deal(NamedTuple):
    """The secrets of one deal, and the versions between which they are secret."""

    number: int
    begins: int
    """The version that deals."""
    ends: int
    """The version that reveals."""
    drawn: tuple[bytes, ...]
    """The hands of seats 0..3 in the order drawn."""
    kitty: bytes
    buried: bytes
    taker: int | None
    seed: bytes
    keys: tuple[bytes, ...]

    def texts(self) -> Iterator[tuple[int | None, bytes]]:
        """Whose secret it is, and how it could stand somewhere in the clear: on the wire, or as indices."""
        for owner, cards in (*enumerate(self.drawn), (self.taker, self.kitty), (self.taker, self.buried)):
            for order in {cards, bytes(sorted(cards))}:
                if len(order) >= 6:
                    yield owner, bytes(cards_to_wire(order))
                    yield owner, order


class Truth:
    """A finished table, all secrets in the clear.

    Attributes:
        commits: all commits, opened; version 1 first.
        states: the table after each of them.
        deals: its deals.
    """

    def __init__(self, table_id: str, stored: Sequence[bytes]) -> None:
        sealed = [chain.decode(raw, at) for at, raw in enumerate(stored, 1)]
        keyring = with_revealed(Keyring(), table_id, [event for commit in sealed for event in commit.events])
        self.table_id = table_id
        self.commits: list[Commit] = []
        self.states: list[Table] = []
        state: Table | None = None
        for commit in sealed:
            opened = open_commit(commit, current=seal_of(state), keyring=keyring)
            state = evolve(state, opened)
            self.commits.append(opened)
            self.states.append(state)
        self.deals = list(self._deals())

    def at(self, version: int) -> Table:
        """The table at a version."""
        return self.states[version - 1]

    def _deals(self) -> Iterator[Deal]:
        begins, first, burial = 0, None, None
        for commit in self.commits:
            for event in commit.events:
                match event.WhichOneof("kind"):
                    case "deal_started":
                        begins, first, burial = commit.version, event.deal_started, None
                    case "buried":
                        burial = event.buried
                    case "deal_scored":
                        reveal, rules = event.deal_scored.reveal, self.states[0].rules
                        drawn, kitty = cards_of_deal(
                            reveal.server_seed,
                            tuple(first.client_seeds),
                            self.table_id,
                            reveal.deal,
                            rules.decks,
                            first.first_drawer,
                            rules.hand_size,
                        )
                        yield Deal(
                            reveal.deal,
                            begins,
                            commit.version,
                            tuple(drawn),
                            kitty,
                            bytes(card - 1 for card in burial.cards) if burial else b"",
                            burial.seat if burial else None,
                            reveal.server_seed,
                            tuple(reveal.keys),
                        )

    def open_deal(self, version: int) -> Deal | None:
        """The deal whose cards are secret at a version."""
        return next((deal for deal in self.deals if deal.begins <= version < deal.ends), None)


def fields(message: Message, path: str = "") -> Iterator[tuple[str, object]]:
    """Every card, as (path, number), and every text of bytes, as (path, bytes), anywhere in a message."""
    for field, value in message.ListFields():
        where = f"{path}.{field.name}".lstrip(".")
        for item in value if field.is_repeated else [value]:
            if isinstance(item, Message):
                yield from fields(item, where)
            elif isinstance(item, bytes) or (
                field.enum_type is not None and field.enum_type.full_name == "shengji.card.v1.Card"
            ):
                yield where, item


def cards_at(message: Message, path: str) -> list[int]:
    """The cards in one field of a message."""
    return [item for where, item in fields(message) if where == path and isinstance(item, int)]


def check_message(truth: Truth, seat: int | None, method: str, raw: bytes) -> int:
    """Fail if a message tells a seat (None: a spectator) what it may not know; its version, 0 for errors."""
    match method:
        case "GetView":
            view = pb.GetViewResponse.FromString(raw).view
            check_view(truth, seat, view)
            version = view.version
        case "Watch":
            message = pb.WatchResponse.FromString(raw)
            if message.HasField("snapshot"):
                check_view(truth, seat, message.snapshot)
                version = message.snapshot.version
            else:
                check_update(truth, seat, message.update)
                version = message.update.version
        case "LegalPlays":
            listed = pb.LegalPlaysResponse.FromString(raw)
            version = listed.version
            for play in listed.plays:
                held = cards_to_wire(truth.at(version).phase.hands[seat])
                assert all(list(play.cards).count(card) <= held.count(card) for card in play.cards)
        case _ if method.endswith("refused"):
            check_error(Status.FromString(raw))
            version = 0
        case _ if method.endswith("said"):
            version = 0
        case _:
            assert not list(fields(GetResponse[method].FromString(raw))), method
            return 0
    secrets = [deal for deal in truth.deals if version < deal.ends]
    for deal in secrets if version else truth.deals:
        for secret in (deal.seed, *deal.keys):
            assert secret not in raw, f"{method} tells a secret of deal {deal.number} at version {version}"
        for owner, text in deal.texts():
            assert owner == seat or text not in raw, f"{method} tells seat {seat} cards of {owner}"
    return version


GetResponse = {name: getattr(pb, f"{name}Response") for name in (
    "Sit", "Leave", "Ready", "Declare", "Pass", "Bury", "Play", "SetAutoPlay", "GetRules",
)}  # fmt: skip


def check_view(truth: Truth, seat: int | None, view: TableView) -> None:
    """Every card in a view is public or its receiver's own."""
    state, deal = truth.at(view.version), truth.open_deal(view.version)
    phase = state.phase
    own: bytes = b""
    if seat is not None and isinstance(phase, Dealt):
        own = deal.drawn[seat][: view.drawn] if isinstance(phase, Declaring) else phase.hands[seat]
    if isinstance(phase, Declaring) and state.pace.draw_ms:
        passed_ms = view.server_now_ms + 1 - phase.deal.started_at_us / 1000
        assert view.drawn <= passed_ms / state.pace.draw_ms, "a card was told before it was drawn"
    assert list(view.hand) == cards_to_wire(own)
    kitty: bytes = b""
    if isinstance(phase, Bury) and phase.settled.declarer == seat:
        kitty = bytes(sorted(deal.kitty))
    elif isinstance(phase, Tricks) and phase.buried_by == seat and seat is not None:
        kitty = deal.buried
    assert sorted(view.kitty) == sorted(cards_to_wire(kitty))
    allowed = {"hand", "kitty", "next_seed_commitment", "standing.cards", "last_score.kitty"}
    assert {where for where, _ in fields(view)} <= allowed | {"trick.cards", "last_trick.cards"}
    played = [list(e.cards_played.cards) for c in truth.commits[: view.version] for e in c.events]
    for play in (*view.trick, *view.last_trick):
        assert sorted(play.cards) in [sorted(cards) for cards in played if cards]
    if view.standing.cards:
        assert isinstance(phase, Dealt)
        assert not (state.rules.sealed and isinstance(phase, Declaring)) or view.standing.seat == seat
    if view.last_score.kitty:
        assert not isinstance(phase, Dealt), "the last kitty is told between deals"


def check_update(truth: Truth, seat: int | None, update: Update) -> None:
    """Every card in a step is public or its receiver's own, and the events are those of the log."""
    deal, state = truth.open_deal(update.version), truth.at(update.version)
    if update.drawn_cards:
        assert seat is not None
        drawn = cards_to_wire(deal.drawn[seat])
        assert list(update.drawn_cards) == drawn[update.drawn - len(update.drawn_cards) : update.drawn]
        if state.pace.draw_ms:
            passed_ms = update.recorded_at_ms + 1 - state.phase.deal.started_at_us / 1000
            assert update.drawn <= passed_ms / state.pace.draw_ms, "a card was told before it was drawn"
    if not update.events:
        return
    commit = truth.commits[update.version - 1]
    assert len(update.events) == len(commit.events)
    for told, true in zip(update.events, commit.events, strict=True):
        check_event(told, true, seat, sealed=state.rules.sealed)


def check_event(told: Event, true: Event, seat: int | None, *, sealed: bool) -> None:
    """One event as it was told, against the one in the log."""
    kind = told.WhichOneof("kind")
    assert kind == true.WhichOneof("kind")
    own = getattr(getattr(told, kind), "seat", None) == seat and seat is not None
    allowed = set(PUBLIC)
    if own or (kind == "declared" and not sealed):
        allowed |= {"declared.cards", "kitty_taken.cards", "buried.cards"}
    paths = {where for where, item in fields(told) if isinstance(item, int)}
    assert paths <= allowed, f"{paths - allowed} told to seat {seat}"
    for where in paths:
        assert cards_at(told, where) == cards_at(true, where)
    told_bytes = {where for where, item in fields(told) if isinstance(item, bytes)}
    assert told_bytes <= PUBLIC_BYTES | ({"seat_ready.client_seed"} if own else set())


def check_error(status: Status) -> None:
    """An error names no card but the one that its caller named."""
    info = ErrorInfo()
    for detail in status.details:
        if detail.Unpack(info):
            for name, value in info.metadata.items():
                assert name == "card" or not set(value.replace(",", " ").split()) & set(CARD_TEXTS)


def decoded(data: bytes) -> list[bytes]:
    """A NATS message and what it carries in base 64."""
    try:
        inner = json.loads(data)["message"]
        return [data, *(base64.b64decode(inner[name]) for name in ("data", "hdrs") if name in inner)]
    except (ValueError, KeyError, TypeError, binascii.Error):
        return [data]
