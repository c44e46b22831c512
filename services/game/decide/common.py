"""What several phases decide alike."""

from collections.abc import Iterable

from services.game.commands import Refusal
from services.game.errors import ShengjiError
from services.game.facts import Facts
from services.game.shuffle import SEED_SIZE, commitment
from services.game.state import Seed, Table
from services.game.wire import cards_to_wire
from services.pb.event.v1 import event_pb2 as pb
from services.rules.cards import CARD_TEXTS
from services.rules.reasons import Reason

Events = tuple[pb.Event, ...]
Decision = Events | Refusal


class SecretsUnknown(ShengjiError):
    """A decision needs secrets that the state was folded without; if lost, the deal is to be voided."""

    reason = Reason.UNAVAILABLE

    def __init__(self, what: str) -> None:
        super().__init__(f"{what} cannot be opened")
        self.what = what


def own_seat(state: Table, player_id: str) -> int | Refusal:
    """The seat of a player who still plays."""
    seat = state.seat_of(player_id)
    if seat is None:
        return Refusal(Reason.NOT_SEATED)
    if state.seats[seat].escaped:
        return Refusal(Reason.NOT_YOURS)
    return seat


def turn_fault(state: Table, version: int, seat: int, to_move: int) -> Refusal | None:
    """Why a turn command comes at the wrong time: decided on another turn, or not the seat's turn at all."""
    if is_stale(state, version):
        return Refusal(Reason.STALE_VERSION)
    return None if seat == to_move else Refusal(Reason.NOT_YOUR_TURN)


def is_stale(state: Table, version: int) -> bool:
    """Whether a turn command was decided on a version of another turn."""
    return not state.turn_version <= version <= state.version


def known(cards: bytes | None, what: str) -> bytes:
    """Cards that the decision needs.

    Raises:
        SecretsUnknown: they are sealed.
    """
    if cards is None:
        raise SecretsUnknown(what)
    return cards


def first_missing(hand: bytes, cards: bytes) -> int | None:
    """The first of these cards, in the order given, that the hand does not hold; copies counted."""
    for at, card in enumerate(cards):
        if cards[: at + 1].count(card) > hand.count(card):
            return card
    return None


def not_in_hand(card: int) -> Refusal:
    """A card not held, or not drawn yet: one answer for both, since undrawn cards are secret."""
    return Refusal(Reason.NOT_IN_HAND, {"card": CARD_TEXTS[card] if card < len(CARD_TEXTS) else str(card)})


def fresh_seed(deal: int, facts: Facts) -> pb.SeedCommitment:
    """A new server seed for a deal, with the commitment to it."""
    server_seed, salt = facts.entropy.bytes(SEED_SIZE), facts.entropy.bytes(SEED_SIZE)
    return pb.SeedCommitment(
        deal=deal,
        commitment=commitment(server_seed),
        salt=salt,
        key_id=facts.key_id,
        server_seed=server_seed,
    )


def reveal(seed: Seed) -> pb.Reveal:
    """The end of a seed's secrecy; the deal's keys are added where the commit is sealed."""
    return pb.Reveal(deal=seed.deal, server_seed=seed.server_seed)


def passed(seat: int) -> pb.Event:
    """A seat passes."""
    return pb.Event(passed=pb.Passed(seat=seat))


def server_passed(seats: Iterable[int]) -> Events:
    """The server passes for seats whose time is up."""
    return tuple(
        event for seat in seats for event in (pb.Event(turn_expired=pb.TurnExpired(seat=seat)), passed(seat))
    )


def kitty_taken(seat: int, cards: bytes) -> pb.Event:
    """A seat takes the kitty, as it was dealt or as it was buried last."""
    return pb.Event(kitty_taken=pb.KittyTaken(seat=seat, cards=cards_to_wire(bytes(sorted(cards)))))


def auto_play_set(seat: int, *, on: bool, by_player: bool) -> pb.AutoPlaySet:
    """The server takes a seat over, or gives it back."""
    return pb.AutoPlaySet(seat=seat, on=on, by_player=by_player)
