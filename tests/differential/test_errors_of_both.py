"""Both engines refuse the same senseless input, and with ValueError."""

import pytest
from support.cards import cards, counts
from support.engines import ENGINES


@pytest.fixture(params=ENGINES)
def engine(request):
    return ENGINES[request.param]


@pytest.fixture
def deal(engine):
    """Two decks, level T, trump S."""
    return engine.Rules(decks=2).order(8, 0)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"decks": 0}, "decks"),
        ({"decks": 5}, "decks"),
        ({"decks": 3, "two_colour": True}, "two_colour"),
        ({"decks": 2, "adjacency": 2}, "adjacency"),
        ({"decks": 2, "preference": -1}, "preference"),
        ({"decks": 2, "throws": 4}, "throws"),
        ({"decks": 2, "forced_component": 3}, "forced_component"),
        ({"decks": 2, "overruff": 2}, "overruff"),
        ({"decks": 2, "multiplier": 5}, "multiplier"),
        ({"decks": 2, "ladders": {(5, 1): (((),),)}}, "ladders"),
        ({"decks": 2, "ladders": {(2, 1): ((((1, 1),),), ((),))}}, "ladders"),
        ({"decks": 2, "ladders": {(2, 1): ((((2, 2),),), ((),))}}, "ladders"),
    ],
)
def test_an_option_out_of_range_is_named(engine, options, named):
    with pytest.raises(ValueError, match=named):
        engine.Rules(**options)


@pytest.mark.parametrize(("level", "trump"), [(13, 0), (-1, 0), (0, 5), (0, -1)])
def test_no_order_out_of_range(engine, level, trump):
    with pytest.raises(ValueError, match="level" if trump == 0 else "trump"):
        engine.Rules(decks=2).order(level, trump)


@pytest.mark.parametrize("trump", [2, 3, 5])
def test_two_colours_have_two_trumps(engine, trump):
    with pytest.raises(ValueError, match="trump"):
        engine.Rules(decks=1, two_colour=True).order(0, trump)


SENSELESS = {
    "no cards": b"",
    "two suits": cards("HK DK"),
    "a side suit and trump": cards("HK HT"),
    "an index that is no card": bytes([54]),
    "more copies than the decks hold": cards("HK HK HK"),
}


@pytest.mark.parametrize("some", SENSELESS.values(), ids=SENSELESS)
def test_shapes_and_leads_need_cards_of_one_suit(deal, some):
    for judge in (deal.shape, deal.lead, lambda lead: deal.winner([lead, lead])):
        with pytest.raises(ValueError, match=r"\w"):
            judge(some)


def test_a_trick_needs_plays_of_one_length(deal):
    for plays in ([], [cards("HK"), cards("HK HQ")], [b"", b""]):
        for judge in (deal.winner, deal.multiplier):
            with pytest.raises(ValueError, match=r"\w"):
                judge(plays)


def test_a_throw_needs_cards_and_three_hands(deal):
    for lead, others in [
        (b"", [b""] * 3),
        (cards("HK HQ"), [b""] * 2),
        (cards("HK HQ"), [b""] * 4),
        (bytes([54, 3]), [b""] * 3),
        (cards("HK HQ"), [bytes([99]), b"", b""]),
    ]:
        with pytest.raises(ValueError, match=r"\w"):
            deal.throw(lead, others)


@pytest.mark.parametrize("card", [54, 255])
def test_no_card_beyond_the_big_joker(deal, card):
    for ask in (deal.suit, deal.tier):
        with pytest.raises(ValueError, match=r"\w"):
            ask(card)
    with pytest.raises(ValueError, match=r"\w"):
        deal.points(bytes([card]))


@pytest.mark.parametrize("vector", [b"", bytes(53), bytes(55), counts(cards("HK HK HK"))])
def test_counts_are_54_within_the_decks(deal, vector):
    lead, good = deal.lead(cards("HK")), counts(cards("HQ"))
    for ask in (
        lambda: lead.check(vector, good),
        lambda: lead.check(good, vector),
        lambda: lead.check_batch(vector * 2, good + vector) if vector else lead.check(vector, good),
        lambda: lead.owed(vector),
        lambda: lead.follows(vector),
        lambda: deal.leads(vector),
    ):
        with pytest.raises(ValueError, match=r"\w"):
            ask()


@pytest.mark.parametrize("extra", [(54, 0), (0, 54), (10, 10)])
def test_a_batch_is_whole_positions(deal, extra):
    lead, good = deal.lead(cards("HK")), counts(cards("HQ"))
    with pytest.raises(ValueError, match=r"\w"):
        lead.check_batch(good + bytes(extra[0]), good + bytes(extra[1]))


def test_cards_are_refused_like_counts(deal):
    lead = deal.lead(cards("HK"))
    queen, many, none = cards("HQ"), cards("HQ HQ HQ"), bytes([54])
    for hand, play in [(none, queen), (queen, none), (many, queen)]:
        with pytest.raises(ValueError, match=r"\w"):
            lead.check_cards(hand, play)


def test_a_listing_needs_room(deal):
    for ask in (deal.leads, deal.lead(cards("HK")).follows):
        with pytest.raises(ValueError, match="cap"):
            ask(counts(cards("HQ")), cap=0)


def test_equal_options_are_equal_rules(engine):
    ladders = {(2, 1): ((((2, 1),),), ((),))}
    assert engine.Rules(decks=2) == engine.Rules(decks=2, ladders={})
    assert hash(engine.Rules(decks=2)) == hash(engine.Rules(decks=2, ladders={}))
    assert engine.Rules(decks=2) != engine.Rules(decks=2, ladders=ladders)
    assert engine.Rules(decks=2, ladders=ladders) == engine.Rules(decks=2, ladders=dict(ladders))
    assert engine.Rules(decks=2) != engine.Rules(decks=3)
    rules = engine.Rules(decks=2)
    assert rules.order(3, 1) is rules.order(3, 1)
    assert (rules.order(3, 1).level, rules.order(3, 1).trump, rules.order(3, 1).rules) == (3, 1, rules)
