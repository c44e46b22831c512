"""What a hand may show now: to declare, and to counter after a bury. Pure; the table has the last word."""

from collections.abc import Iterator

from engine_ext.codes import LITTLE_JOKER
from services.cli.play.model import Game
from services.rules.cards import colour_of, contains, identity, is_joker, joker_of_colour, rank_of
from services.rules.declarations import Declarations
from services.rules.declaring import judge_showing, must_hold
from services.rules.joker_backed import judge_counter
from services.rules.options import Declaring


def declarations(game: Game) -> list[bytes]:
    """Everything that the receiver may declare with the cards drawn so far, smaller showings first."""
    return [
        cards
        for cards in _possible(game)
        if contains(game.hand, must_hold(game.declarations, game.me, cards))
        and isinstance(judge_showing(game.rules, game.deal, game.declarations, game.me, cards), Declarations)
    ]


def counters(game: Game) -> list[bytes]:
    """Everything that the receiver may counter a bury with."""
    return [
        cards
        for cards in _possible(game)
        if isinstance(judge_counter(game.rules, game.deal, game.declarations, game.me, cards), Declarations)
    ]


def _possible(game: Game) -> Iterator[bytes]:
    """Every set of cards in the hand that may declare something by the rules' policy."""
    rules, same = game.rules, dict[int, list[int]]()
    for card in sorted(game.hand):
        if is_joker(card) or rank_of(card) == game.level:
            same.setdefault(identity(card, two_colour=rules.two_colour), []).append(card)
    for cards in same.values():
        if rules.declaring is not Declaring.JOKER_BACKED:
            yield from (bytes(cards[:count]) for count in range(1, len(cards) + 1))
        elif cards[0] >= LITTLE_JOKER:
            yield from [bytes(cards[:2])] if len(cards) > 1 else []
        elif (joker := joker_of_colour(colour_of(cards[0]))) in same:
            yield from (bytes([*cards[:count], joker]) for count in range(1, min(2, len(cards)) + 1))
