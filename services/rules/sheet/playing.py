"""Sections on play: leading, following, winning (RULES §4-§6)."""

from services.rules.options import ForcedComponent, Overruff, Preference, RuleSet, ThrowBlockers, Throws
from services.rules.sheet.said import Paragraph, Said, Section, plain, run_on, times
from services.rules.sheet.shapes import ladder_of, leads_told, shape_said, step_said
from services.rules.sheet.worked import worked


def leading(rules: RuleSet) -> Section:
    """What may be led, and what becomes of a throw."""
    shapes_zh = ["单张", "对子", "三张", "四张"][: rules.copies]
    shapes_en = ["a single", "a pair", "a triple", "a quad"][: rules.copies]
    if rules.tractors and rules.copies > 1:
        shapes_zh.append("拖拉机")
        shapes_en.append("a tractor")
    kinds_en = shapes_en[0] if len(shapes_en) == 1 else f"{', '.join(shapes_en[:-1])} or {shapes_en[-1]}"
    paragraphs = [
        plain(
            f"第一轮由庄家先出，以后由上一轮的赢家先出。可以出一门花色里的{'、'.join(shapes_zh)}。",
            f"The declarer leads first, then the winner of each trick. A lead is {kinds_en} of one suit.",
        ),
        _throws(rules),
    ]
    if rules.throws is not Throws.NONE and rules.throws is not Throws.ONLY_WHEN_OTHERS_VOID:
        paragraphs += _failed(rules)
    return Section(
        "throws", Said("出牌与甩牌", "Leading and throws"), tuple(paragraphs), worked(rules, "throws")
    )


def _throws(rules: RuleSet) -> Paragraph:
    many = Said(
        "甩牌：把同一门花色里的几组牌一起打出，主牌也可以甩。",
        "A throw is a lead of several of these at once, all of one suit; trumps can be thrown too.",
    )
    wider = (
        Said("同样张数而更宽的牌型也算能管住。", "A wider shape of as many cards beats a tractor here too.")
        if rules.wider_beats and rules.tractors and rules.copies >= 3
        else None
    )
    stands = run_on(
        Said(
            "其他三家（包括对家）在这门里都没有能单独管住其中任何一组的牌，甩牌才成立；别家的主牌不影响副牌的甩牌，"
            "更宽的组可以拆开来管。",
            "It stands if none of the three others, partner included, holds in that suit something that "
            "beats one "
            "of its parts led alone, wider groups broken where that helps. Trumps held do not matter to "
            "a throw of "
            "a side suit.",
        ),
        wider,
    )
    match rules.throws:
        case Throws.NONE:
            return plain("不能甩牌：一次只能出一组。", "There are no throws: a lead is one of these only.")
        case Throws.ONLY_WHEN_OTHERS_VOID:
            only = Said(
                "只有其他三家都没有这门花色的牌时才许甩，所以甩出就成立。",
                "It is allowed only while none of the three others holds a card of the suit, so it "
                "always stands.",
            )
            return Paragraph(run_on(many, only))
        case Throws.NOT_WHEN_OTHERS_VOID:
            never = Said(
                "其他三家都没有这门花色时不许甩。",
                "It is not allowed while all three others are out of the suit.",
            )
            return Paragraph(run_on(many, never, stands))
        case _:
            return Paragraph(run_on(many, stands))


def _failed(rules: RuleSet) -> list[Paragraph]:
    forced = {
        ForcedComponent.LOWEST_BEATABLE: Said(
            "甩牌失败：在能被管住的各组里，必须出最小的一组（比每组最大的牌；一样大时先出张数少的，再按 "
            "♠♥♣♦），其余收回。",
            "A throw that fails plays the lowest of the parts that can be beaten (by its top card; of "
            "equals the "
            "one of fewer cards, then in the order ♠♥♣♦); the rest is taken back.",
        ),
        ForcedComponent.LOWEST: Said(
            "甩牌失败：不论哪组被管住，必须出其中最小的一组，其余收回。",
            "A throw that fails plays its lowest part, whether or not that one can be beaten; the rest "
            "is taken back.",
        ),
        ForcedComponent.SMALLEST: Said(
            "甩牌失败：在能被管住的各组里，必须出张数最少的一组，张数相同出较小的，其余收回。",
            "A throw that fails plays, of the parts that can be beaten, the one of fewest cards, of "
            "those the "
            "lowest; the rest is taken back.",
        ),
    }[rules.forced_component]
    told = [
        Paragraph(run_on(forced, Said("想甩的牌大家都看得到。", "All see what was tried."), _blockers(rules)))
    ]
    if rules.throw_fine_points:
        told.append(
            plain(
                f"每收回一张牌，甩牌的一方罚 {rules.throw_fine_points} 分（抓分方甩失败则减分，"
                "庄家方甩失败则给抓分方加分）。",
                "Each card taken back costs the thrower's side "
                f"{times(rules.throw_fine_points, 'point')}: taken from "
                "the attackers' total, or added to it when the declaring side threw.",
            )
        )
    if rules.failed_throw_quarters:
        quarters = rules.failed_throw_quarters
        told.append(
            plain(
                f"甩牌失败者另付底金：给两个对手各 {quarters} 份，每份为底注的四分之一（舍去零头）。",
                f"The thrower alone also pays each of the two opponents {times(quarters, 'quarter')} of "
                "the base "
                "stake, a quarter rounded down.",
            )
        )
    return told


def _blockers(rules: RuleSet) -> Said | None:
    """Who blocked a throw, where the table is told."""
    if rules.throw_blockers is ThrowBlockers.HIDDEN:
        return None
    if rules.forced_component is ForcedComponent.LOWEST:
        return Said(
            "同时公布哪几家能管住打出的那一组；没有人能管住它时，公布哪几家能管住其他各组。",
            "It is told at once which seats can beat the part played or, if nobody can, another part.",
        )
    return Said(
        "同时公布哪几家能管住打出的那一组。",
        "It is told at once which seats can beat the part played.",
    )


def following(rules: RuleSet) -> Section:
    """Suit, then shape, with the ladders step by step."""
    paragraphs = [
        plain(
            "必须跟同样张数。首家那门花色的牌不多于首家所出张数时，全部跟出，其余随意；多于时，只能跟这门花色的牌。",
            "Play as many cards as were led. Who holds no more of the suit led than that plays all of "
            "it, and "
            "anything besides; who holds more plays cards of the suit only.",
        )
    ]
    if rules.copies > 1:
        paragraphs.append(
            plain(
                "跟得够时还要尽量跟牌型：手里做得到的最好一步，就必须跟（跟得更好也行）。各种首家牌型的顺序见下。",
                "With enough of the suit the shape must be followed as well as the hand can: the best "
                "step below "
                "that it can make is owed, and a better one may be played.",
            )
        )
        if rules.throws is not Throws.NONE:
            paragraphs.append(
                plain(
                    "首家甩牌时，从最大的一组起逐组跟牌型。",
                    "A throw is followed part by part, the largest first.",
                )
            )
        paragraphs += _breaking(rules)
        paragraphs += [_ladder(rules, lead) for lead in leads_told(rules)]
        paragraphs += _longer(rules)
    return Section("following", Said("跟牌", "Following"), tuple(paragraphs), worked(rules, "following"))


def _breaking(rules: RuleSet) -> list[Paragraph]:
    if rules.copies < 3:
        return []
    if rules.keep_groups_whole:
        return [
            plain(
                "比首家更宽的组可以不拆：首家出对子时，三张、四张不必拆成对子来跟。",
                "Groups wider than what was led may stay whole: for a pair no triple or quad needs to "
                "be broken.",
            )
        ]
    return [
        plain(
            "更宽的组必要时得拆：没有别的对子时，三张或四张要拆出对子来跟。",
            "Wider groups are broken where the shape asks for it: without another pair, a triple or "
            "quad gives one.",
        )
    ]


def _ladder(rules: RuleSet, lead: tuple[int, int]) -> Paragraph:
    name, cards = shape_said(lead), lead[0] * lead[1]
    steps = tuple(step_said(step, cards) for step in ladder_of(rules, lead))
    return Paragraph(Said(f"首家出{name.zh}：", f"On a {name.en}:"), steps=steps)


def _longer(rules: RuleSet) -> list[Paragraph]:
    if not rules.tractors:
        return []
    if rules.copies == 2:
        return [
            plain(
                "更长的拖拉机同理：先跟一样长的，再跟尽量长的，再跟对子。从更长的拖拉机里取一段也可以。",
                "Longer tractors likewise: as long a one, else the longest there are, then pairs. A "
                "piece of a "
                "longer tractor will do.",
            )
        ]
    first = {
        Preference.TRACTORS_FIRST: Said(
            "先跟拖拉机（宽的先于窄的，长的先于短的），再跟四张、三张、对子",
            "tractors first (wider before narrower, longer before shorter), then quads, triples and pairs",
        ),
        Preference.WIDTH_FIRST: Said(
            "先跟宽的（三张先于对子，同宽时长的先于短的）",
            "wider shapes first (triples before pairs; of one width the longer first)",
        ),
    }[rules.preference]
    return [
        plain(
            f"没有列出的牌型：{first.zh}，都不比首家的宽或长。从更长的拖拉机里取一段也可以。",
            f"For leads not listed: {first.en}, none wider or longer than the lead. A piece of a longer "
            "tractor "
            "will do.",
        )
    ]


def winning(rules: RuleSet) -> Section:
    """What beats a lead, ruffs and overruffs."""
    paragraphs = [
        plain(
            "跟牌要赢，必须全是首家那门花色，或全是主牌，并且能拆成与首家相同的牌型；否则只是垫牌，不能赢。"
            "更宽或更长的组可以当作较小的组用。",
            "To win, a follow must be all of the suit led or all trumps, and it must be possible to cut "
            "it into the "
            "shapes of the lead, where a wider or longer group may serve for a smaller. Anything else "
            "is a discard "
            "and never wins.",
        ),
        plain(
            "首家出副牌而没有这门花色时，用同样牌型的主牌压住叫毙；再用更大的压住叫盖毙。",
            "Out of a side suit, trumps of the same shape ruff it; a higher ruff overruffs.",
        ),
        _compared(rules),
    ]
    if rules.groups_stay_together and rules.copies >= 3:
        paragraphs.append(
            plain(
                "相同的牌总在一起：首家的每个对子、三张、四张或拖拉机，必须用正好那么多张相同牌的组来压；单张用什么压都行。",
                "Identical cards stay together: each pair, triple, quad or tractor of the lead must be "
                "answered by "
                "groups of exactly that many identical cards; its singles by anything.",
            )
        )
    if rules.wider_beats and rules.tractors and rules.copies >= 3:
        paragraphs.append(
            plain(
                "首家只出一副拖拉机时，同样张数而更宽的一组压过它"
                + (
                    "：四张压两连对，连三张压三连对，连四张压连三张。"
                    if rules.copies >= 4
                    else "：连三张压三连对。"
                )
                + "都更宽时宽者为大，再比最大的牌。",
                "When a single tractor is led, one wider shape of as many cards beats it"
                + (
                    ": a quad over two pairs in a row, triples in a row over pairs, quads over triples. "
                    if rules.copies >= 4
                    else ": triples in a row over pairs. "
                )
                + "Of such answers the wider wins, then the higher.",
            )
        )
    paragraphs.append(
        plain(
            "赢家一方得到这一轮的分。",
            "The winner's side takes the points of the trick, and the winner leads next.",
        )
    )
    return Section(
        "winning", Said("大小与毙牌", "Winning and ruffing"), tuple(paragraphs), worked(rules, "winning")
    )


def _compared(rules: RuleSet) -> Paragraph:
    equal = Said("一样大时先出的为大。", "Equal: the earlier wins.")
    largest = Said(
        "同一门里比大小，只看跟首家最大一组相对应的那组，比其中最大的牌。",
        "Within a suit only the part that answers the largest part of the lead is compared, by its top card.",
    )
    if rules.overruff is Overruff.HIGHEST_CARD and rules.throws is not Throws.NONE:
        largest = Said(
            "同一门里比大小，比最大的牌；压甩牌的几家之间，只比整手牌里最大的一张。",
            "Within a suit the top card decides; among plays that qualify against a throw only the "
            "single highest "
            "card of each is compared.",
        )
    return Paragraph(run_on(largest, equal))
