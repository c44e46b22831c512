"""GetRules: options and words, in the caller's language."""

import pytest
from support.serving import Caller, Refused

from services.game.wire import cards_from_wire
from services.pb.event.v1.event_pb2 import RuleOption
from services.pb.table.v1 import table_service_pb2 as pb
from services.rules.cards import parse_cards
from services.rules.presets import PRESETS
from services.rules.sheet import sheet


@pytest.fixture
def ann(one) -> Caller:
    return Caller(one.data, "ann")


async def test_a_preset_in_the_language_asked_for(one, ann):
    request = pb.GetRulesRequest(preset="classic-2d", language="zh-CN")
    answer = await ann.call(one, "GetRules", request, ("accept-language", "en"))
    assert answer.rules.preset == "classic-2d"
    assert answer.sheet.language == "zh"
    told = sheet(PRESETS["classic-2d"])
    assert [section.title for section in answer.sheet.sections] == [section.title.zh for section in told]
    for section, same in zip(answer.sheet.sections, told, strict=True):
        assert section.key == same.key
        for paragraph, said in zip(section.paragraphs, same.paragraphs, strict=True):
            assert paragraph.text == said.said.zh
            assert list(paragraph.steps) == [step.zh for step in said.steps]
            assert [len(row.cells) for row in paragraph.table] == [len(row) for row in said.table]
        for example, judged in zip(section.examples, same.examples, strict=True):
            assert (example.setting, example.text) == (judged.setting.zh, judged.said.zh)
            assert [cards_from_wire(hand.cards) for hand in example.hands] == [
                parse_cards(hand.cards) for hand in judged.hands
            ]


@pytest.mark.parametrize(("header", "language"), [("zh-CN,en;q=0.5", "zh"), ("en", "en"), ("fr", "en")])
async def test_else_in_the_language_of_the_header(one, ann, header, language):
    request = pb.GetRulesRequest(preset="closed-4d")
    answer = await ann.call(one, "GetRules", request, ("accept-language", header))
    assert answer.sheet.language == language


async def test_a_table_tells_its_own_rules(game):
    request = pb.GetRulesRequest(table_id=game.table_id, language="en")
    answer = await game.callers[0].call(game.at, "GetRules", request)
    assert answer.rules.preset == "classic-2d"
    assert answer.sheet.sections


async def test_overrides_are_told_before_a_table_is_founded(one, ann):
    plain = await ann.call(one, "GetRules", pb.GetRulesRequest(preset="classic-2d"))
    option = RuleOption(name="hook_back", value='["J"]')
    changed = await ann.call(one, "GetRules", pb.GetRulesRequest(preset="classic-2d", overrides=[option]))
    assert plain.sheet != changed.sheet
    assert any("Hook-back" in p.text for s in changed.sheet.sections for p in s.paragraphs)


async def test_only_the_list_has_no_sheet(one, ann):
    answer = await ann.call(one, "GetRules", pb.GetRulesRequest())
    assert list(answer.presets) == list(PRESETS)
    assert not answer.HasField("sheet")


@pytest.mark.parametrize(
    ("request_", "reason"),
    [
        (pb.GetRulesRequest(preset="classic-2d", language="fr"), "BAD_INPUT"),
        (pb.GetRulesRequest(preset="classic-9d"), "UNKNOWN_PRESET"),
        (pb.GetRulesRequest(overrides=[RuleOption(name="kitty", value="8")]), "BAD_INPUT"),
        (
            pb.GetRulesRequest(preset="classic-2d", overrides=[RuleOption(name="x", value="8")]),
            "UNKNOWN_OPTION",
        ),
    ],
)
async def test_nonsense_is_refused(one, ann, request_, reason):
    with pytest.raises(Refused) as refused:
        await ann.call(one, "GetRules", request_)
    assert refused.value.reason == reason
