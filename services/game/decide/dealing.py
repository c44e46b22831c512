"""Starting a deal: the shuffle that the seeds make, and who gets which cards (RULES §7 Dealing, D18)."""

from collections.abc import Sequence

from services.game.decide.common import SecretsUnknown
from services.game.draw import cards_of_deal
from services.game.shuffle import first_drawer, padded_client_seed
from services.game.state import Table
from services.game.wire import cards_to_wire, level_to_wire
from services.pb.event.v1 import event_pb2 as pb
from services.rules.options import FirstDrawer


def deal_started(state: Table, client_seeds: Sequence[bytes]) -> pb.Event:
    """The next deal.

    Args:
        state: a table with a seed committed to.
        client_seeds: of seats 0..3, 0..32 bytes each.

    Raises:
        SecretsUnknown: the server seed is sealed.
    """
    seed, rules = state.next_seed, state.rules
    if seed is None or not seed.server_seed:
        raise SecretsUnknown("the server seed")
    mixed = tuple(padded_client_seed(client_seed) for client_seed in client_seeds)
    declarer = state.match.declarer
    if declarer is None or rules.first_drawer is FirstDrawer.RANDOM:
        drawer = first_drawer(seed.server_seed, mixed, state.table_id, seed.deal)
    else:
        drawer = declarer
    dealt = cards_of_deal(
        seed.server_seed, mixed, state.table_id, seed.deal, rules.decks, drawer, rules.hand_size
    )
    started = pb.DealStarted(
        deal=seed.deal,
        first_drawer=drawer,
        declarer=declarer,
        levels=[level_to_wire(level) for level in state.match.levels],
        level=level_to_wire(state.match.deal_level),
        client_seeds=mixed,
        hands=[pb.Cards(cards=cards_to_wire(bytes(sorted(hand)))) for hand in dealt.hands],
        kitty=pb.Cards(cards=cards_to_wire(dealt.kitty)),
    )
    return pb.Event(deal_started=started)
