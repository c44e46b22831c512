"""Which cards a seat has drawn: the deck is a function of the seeds, so the state keeps the seeds alone."""

from functools import lru_cache

from services.game.shuffle import Deal as DealtCards
from services.game.shuffle import deal_cards, deck_order
from services.game.state import Declaring, Table
from services.game.waits import drawn


def drawn_hand(state: Table, seat: int, now_us: int) -> bytes | None:
    """The cards that a seat has drawn by now, in the order drawn; ``None`` when the server seed is sealed.

    Only while cards are drawn and declared.
    """
    phase = state.phase
    if not isinstance(phase, Declaring) or not phase.deal.seed.server_seed:
        return None
    deal = phase.deal
    dealt = cards_of_deal(
        deal.seed.server_seed,
        deal.client_seeds,
        state.table_id,
        deal.number,
        state.rules.decks,
        deal.first_drawer,
        state.rules.hand_size,
    )
    return dealt.hands[seat][: drawn(state, now_us)]


@lru_cache(maxsize=2048)
def cards_of_deal(
    server_seed: bytes,
    client_seeds: tuple[bytes, ...],
    table_id: str,
    deal: int,
    decks: int,
    first_drawer: int,
    hand_size: int,
) -> DealtCards:
    """The hands of a deal in the order drawn, and the kitty in deck order.

    Remembered for the deals that are being drawn, since every round of every view asks again.
    """
    deck = deck_order(server_seed, client_seeds, table_id, deal, decks)
    return deal_cards(deck, first_drawer, hand_size)
