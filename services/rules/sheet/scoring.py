"""Sections on results: the kitty and its multiplier, levels, the match, stakes, time (RULES §7-§9)."""

from itertools import pairwise
from typing import Final

from services.rules.level_tables import LevelTable
from services.rules.options import MatchEnd, Multiplier, RuleSet
from services.rules.sheet.said import Paragraph, Said, Section, listed, plain, times
from services.rules.sheet.worked import worked
from services.rules.shown import group_text, rank_text, run_text

_ESCAPE_STAKES: Final = 8


def kitty(rules: RuleSet) -> Section:
    """What the last trick is worth besides its points."""
    title = Said("抠底", "Capturing the kitty")
    if rules.multiplier is Multiplier.LAST_TRICK:
        title = Said("最后一轮", "The last trick")
        told = [
            plain(
                "最后一轮的分乘以赢家最大一组牌的张数（单张 ×1，对子 ×2，三张 ×3……）。抓分方赢则加给抓分方，"
                "庄家方赢则从抓分方的分里扣掉，可以扣成负分。",
                "The points of the last trick count times the cards of the winner's largest part "
                "(single ×1, pair "
                "×2, triple ×3 …): added to the attackers if they win it, taken from them if the "
                "declaring side "
                "does, below zero even.",
            )
        ]
    elif not rules.kitty:
        told = [plain("没有底牌，所以没有抠底。", "Without a kitty there is nothing to capture.")]
    else:
        told = [
            plain(
                "抓分方赢最后一轮，底牌里的分加倍归抓分方；庄家方赢则不计。倍数看赢家用来压住首家的那些组，不看其他的牌。",
                "If the attackers win the last trick, they score the points in the kitty times a "
                "multiplier; if the "
                "declaring side wins it, those do not count. The multiplier looks at the parts with "
                "which the "
                "winner answers the lead, not at other cards.",
            ),
            _multiplier(rules),
        ]
    return Section("kitty", title, tuple(told), worked(rules, "kitty"))


def _multiplier(rules: RuleSet) -> Paragraph:
    match rules.multiplier:
        case Multiplier.POWER:
            return plain(
                "最大一组有几张，就把 2 自乘几次：单张 2 倍，两张 4 倍，三张 8 倍，四张 16 倍，最多 64 倍。",
                "Two to the power of the cards of the largest part: a single 2, two cards 4, three 8, "
                "four 16, "
                "at most 64.",
            )
        case Multiplier.TITANIC:
            return Paragraph(
                Said("取下面第一个符合的：", "The first of these that applies:"), steps=_titanic(rules)
            )
        case Multiplier.CLOSED:
            return _by_shape(rules)
        case _:
            return plain(
                "最大一组每张牌 2 倍：单张 2 倍，对子 4 倍，连对为 4 × 对数。",
                "2 for each card of the largest part: single 2, pair 4, a tractor 4 for each of its pairs.",
            )


def _titanic(rules: RuleSet) -> tuple[Said, ...]:
    """Wider parts first, of one width tractors first."""
    steps = []
    for width in range(rules.copies, 1, -1):
        name = Said(group_text(width, "zh"), group_text(width, "en"))
        if rules.tractors:
            run = Said(
                f"{run_text(width)}：2 × {width} 的（组数）次方",
                f"tractor of {name.en}s: 2 × {width} to the power of its {name.en}s",
            )
            steps.append(run)
        steps.append(Said(f"{name.zh}：{2 * width} 倍", f"{name.en}: {2 * width}"))
    return (*steps, Said("单张：2 倍", "single: 2"))


def _by_shape(rules: RuleSet) -> Paragraph:
    runs = {2: 8, 3: 16, 4: 32}
    widths = range(1, rules.copies + 1)
    told = [
        Said(f"{group_text(width, 'zh')} {2 * width} 倍", f"{group_text(width, 'en')} {2 * width}")
        for width in widths
    ]
    tractors = [
        Said(f"{run_text(width)} {runs[width]} 倍", f"tractor of {group_text(width, 'en')}s {runs[width]}")
        for width in widths
        if width > 1 and rules.tractors
    ]
    groups = listed(told, zh="，")
    if not tractors:
        return plain(f"看最大一组：{groups.zh}。", f"By the largest part: {groups.en}.")
    joined = listed(tractors, zh="，")
    return plain(
        f"看最大一组：{groups.zh}；{joined.zh}，不论多长。",
        f"By the largest part: {groups.en}; {joined.en}, of any length.",
    )


# -------------------------------------------------------------------------------------------------- levels


def levels(rules: RuleSet) -> Section:
    """The level table, and who is declarer next."""
    paragraphs = [
        Paragraph(
            Said("抓分方所得的分决定结果：", "The attackers' points decide:"), table=_table(rules.level_table)
        ),
        *_beyond(rules.level_table),
        plain(
            "庄家方守住，下一局由庄家的对家坐庄；抓分方上台，下一局由庄家的下家坐庄。",
            "If the declaring side stays in, the declarer's partner is declarer next; if the attackers "
            "take over, "
            "the player after the declarer.",
        ),
    ]
    return Section("levels", Said("升级", "Levels"), tuple(paragraphs))


def _table(table: LevelTable) -> tuple[tuple[Said, ...], ...]:
    rows = [(Said("抓分方得分", "attackers' points"), Said("结果", "result"))]
    low: int | None = None
    for below, up in table.declarers:
        rows.append((_range(low, below), _stay_said(up)))
        low = below
    starts = [*table.attackers]
    last, up = starts[-1]
    if _grows(table):
        starts.append((last + table.step, up + 1))
    for (start, up), (following, _) in pairwise(starts):
        rows.append((_range(start, following), _out_said(up)))
    rows.append((Said(f"{starts[-1][0]} 起", f"{starts[-1][0]} and more"), _out_said(starts[-1][1])))
    return tuple(rows)


def _grows(table: LevelTable) -> bool:
    return table.step > 0 and (table.cap is None or table.cap > table.attackers[-1][1])


def _range(low: int | None, below: int) -> Said:
    if low is None:
        return Said(f"{below - 1} 及以下", f"{below - 1} or less")
    if below - low == 1:
        return Said(f"{low}", f"{low}")
    return Said(f"{low}–{below - 1}", f"{low}–{below - 1}")


def _stay_said(up: int) -> Said:
    if not up:
        return Said("庄家方守住，不升级", "declaring side stays, no level")
    return Said(f"庄家方守住，升 {up} 级", f"declaring side stays and gains {times(up, 'level')}")


def _out_said(up: int) -> Said:
    if not up:
        return Said("抓分方上台，不升级", "attackers take over, no level")
    return Said(f"抓分方上台，升 {up} 级", f"attackers take over and gain {times(up, 'level')}")


def _beyond(table: LevelTable) -> list[Paragraph]:
    if not _grows(table):
        return []
    most = (
        Said("，不封顶。", ", without end.")
        if table.cap is None
        else Said(f"，最多 {table.cap} 级。", f", {times(table.cap, 'level')} at most.")
    )
    return [
        plain(
            f"以后每多 {table.step} 分再多升 1 级{most.zh}",
            f"Each further {table.step} points are worth one level more{most.en}",
        )
    ]


def match(rules: RuleSet) -> Section:
    """Where a match starts, how it ends, and what hinders it."""
    start = rank_text(rules.start_level)
    paragraphs = [
        plain(
            f"双方都从 {start} 打起，各记各的级；每局打的是庄家方的级。",
            f"Both sides start at {start} and keep levels of their own; a deal is played at the level of the "
            "declaring side.",
        ),
        _end(rules),
    ]
    if rules.deals:
        paragraphs.append(
            plain(
                f"最多打 {rules.deals} 局：打完后累计升级多的一方赢，一样多为平局。",
                f"After {times(rules.deals, 'deal')} the match is over: the side that has advanced more "
                "levels in "
                "all wins, equal is a draw.",
            )
        )
    paragraphs += _obstacles(rules)
    return Section("match", Said("整场胜负", "The match"), tuple(paragraphs))


def _end(rules: RuleSet) -> Paragraph:
    return {
        MatchEnd.REACH_ACE: plain(
            "先升到 A（或会超过 A）的一方立刻获胜，A 不用再打。",
            "The first side to reach A, or to go beyond it, has won; A itself is not played.",
        ),
        MatchEnd.PASS_ACE: plain(
            "升到 A 为止，A 必须打过：坐庄打 A 并守住的一方获胜。双方可以都停在 A。",
            "Levels stop at A, and A must be passed: a side wins by staying in as declarers in a deal "
            "at its own "
            "A. Both sides may stand there.",
        ),
        MatchEnd.LOOP: plain("过了 A 再从 2 打起。", "After A comes 2 again."),
    }[rules.match_end]


def _obstacles(rules: RuleSet) -> list[Paragraph]:
    told = []
    if rules.stop_levels:
        ranks = ", ".join(map(rank_text, rules.stop_levels))
        told.append(
            plain(
                f"必打的级：{ranks.replace(', ', '、')}。升级不能跳过，遇到就停在那里。",
                f"Levels that must be played: {ranks}. No advance goes past one; it ends there.",
            )
        )
    if rules.must_defend:
        ranks = ", ".join(map(rank_text, rules.must_defend))
        told.append(
            plain(
                f"必须守住的级：{ranks.replace(', ', '、')}。升级不能跳过，遇到就停在那里；"
                "只有坐庄打自己的这一级并守住才能往上升，作为抓分方所得的级不算；退下去以后再到，要重新守住。",
                f"Levels that must be defended: {ranks}. No advance goes past one; it ends there. A side "
                "leaves it upwards only by staying in as declarers in a deal at that level, its own; levels "
                "gained there as attackers do not move it. Who comes to it again must defend it again.",
            )
        )
    if rules.hook_back:
        ranks = ", ".join(map(rank_text, rules.hook_back))
        start = rank_text(rules.start_level)
        told.append(
            plain(
                f"钩回去：打 {ranks.replace(', ', '、')} 时，抓分方若用级牌赢最后一轮"
                f"（压住首家最大一组的全是级牌），庄家方一律退回 {start}；抓分方所得照算。",
                f"Hook-back: at {ranks}, if the attackers win the last trick with level cards (what "
                "answers the "
                "largest part of the lead is level cards only), the declaring side falls back to "
                f"{start}, whatever "
                "the deal gave; the attackers keep their gain.",
            )
        )
    return told


# ------------------------------------------------------------------------------------------ stakes and time


def stakes(rules: RuleSet) -> Section:
    """What is paid, and what leaving costs."""
    leave = (
        plain(
            f"逃跑：中途离桌付 {_ESCAPE_STAKES} 倍底注，另三家各得 1 倍，其余 5 倍归平台。掉线或超时不算，"
            "由系统代打；连续被代打太多轮而一局打完还没回来，才算逃跑。座位由系统打完，结果照算。",
            f"Escape: who leaves in mid-match pays {_ESCAPE_STAKES} base stakes, one to each of the "
            "others and five "
            "to the house. A lost connection or a turn out of time is none: the server plays. Who has "
            "had too many "
            "turns in a row played so, and is not back when the deal ends, has escaped. The server "
            "plays the seat "
            "to the end, and results still count.",
        )
        if rules.escape_fee
        else plain(
            "中途离桌不另收费，座位由系统打完，结果照算。",
            "Leaving in mid-match costs nothing extra; the server plays the seat to the end, and "
            "results still count.",
        )
    )
    return Section(
        "stakes",
        Said("底注与逃跑", "Stakes and leaving"),
        (
            plain(
                "有底注的牌桌，每局输方每人付：底注 × 赢方升的级数（至少按 1 级），由赢方两人平分。"
                f"重发的局不结算。入座至少要有 {_ESCAPE_STAKES} 倍底注；付不起的部分由赢方平摊。",
                "At a table with a base stake, each loser of a deal pays it times the levels that the "
                "winners gain, "
                "at least one, and the winners share it equally. A redeal pays nothing. Sitting down needs "
                f"{_ESCAPE_STAKES} base stakes; what a loser cannot pay the winners bear equally.",
            ),
            leave,
        ),
    )


def time(rules: RuleSet) -> Section:
    """What the server does when a time is up."""
    sparing = rules.bury_points_max is not None
    steps = [Said("亮主：不亮", "declaring: a pass")]
    if rules.kitty:
        kinds = [
            Said("副牌先于主牌", "side suits before trumps"),
            Said("没有分的先于有分的", "cards without points before points"),
        ]
        first = listed(kinds[::-1] if sparing else kinds, zh="，")
        steps.append(
            Said(
                f"扣底：{first.zh}，最短的花色先，从小到大",
                f"burying: {first.en}, the shortest suit first, lowest first",
            )
        )
    steps.append(Said("出牌：分最少、最小的合法牌", "playing: the lowest legal cards with the fewest points"))
    return Section(
        "time",
        Said("时限", "Time"),
        (
            Paragraph(
                Said(
                    "每次等待都有时限，由牌桌设定。时间到了由系统代办：",
                    "Every wait has a limit that the table sets. What is missing at the limit is done "
                    "by the server:",
                ),
                steps=tuple(steps),
            ),
            plain(
                "系统自己离线时错过的时限，会重新给足。",
                "A limit that passed while the server was away is given again.",
            ),
        ),
    )
