"""Reasons and what they tell."""

import re

import pytest

from services.rules.reasons import TEXTS, Reason, message


def test_every_reason_has_two_texts():
    assert set(TEXTS) == set(Reason)


@pytest.mark.parametrize("reason", list(Reason))
def test_names_and_texts_are_well_formed(reason):
    assert reason.value == reason.name.lower()
    assert re.fullmatch(r"[a-z][a-z_]{2,62}", reason.value)
    english, chinese = TEXTS[reason]
    assert english.endswith(".")
    assert chinese.endswith("。")
    assert sorted(re.findall(r"{\w+}", english)) == sorted(re.findall(r"{\w+}", chinese))


def test_details_and_locales():
    assert message(Reason.WRONG_COUNT, count=3) == "Play exactly 3 cards."
    assert message(Reason.WRONG_COUNT, "zh-CN", count=3) == "须出 3 张牌。"
    assert message(Reason.WRONG_COUNT, "fr") == "Play exactly {count} cards."
    assert message(Reason.BAD_CARD, card="{0}{x!r}") == "{0}{x!r} is no card."


def test_cards_and_shapes_are_told_as_people_read_them():
    assert message(Reason.NOT_IN_HAND, card="ST") == "You do not hold ♠10."
    assert message(Reason.NOT_IN_HAND, "zh", card="BJ") == "您手里没有 大王。"
    assert (
        message(Reason.MUST_FOLLOW_SHAPE, "zh", owed="2x3, 2") == "要跟牌型：您手里有，须跟出 三连对、对子。"
    )
    assert message(Reason.MUST_FOLLOW_SHAPE, owed="3x2").endswith("play a tractor of 2 triples.")
    assert message(Reason.MUST_FOLLOW_SHAPE, owed="2x").endswith("play 2x.")


@pytest.mark.parametrize("reason", list(Reason))
def test_every_text_is_short_and_no_two_are_the_same(reason):
    english, chinese = TEXTS[reason]
    assert len(english) <= 100
    assert len(chinese) <= 60
    assert [english for english, _ in TEXTS.values()].count(english) == 1
    assert [chinese for _, chinese in TEXTS.values()].count(chinese) == 1
