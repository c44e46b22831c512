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
