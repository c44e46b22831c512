"""Sections on the cards: who plays with what, what beats what, what makes a tractor (RULES §1-§3)."""

from services.rules.cards import CARD_POINTS, SEATS, deck
from services.rules.options import Adjacency, FirstDrawer, RuleSet
from services.rules.sheet.said import Paragraph, Said, Section, plain, run_on, times
from services.rules.sheet.shapes import larger_said
from services.rules.sheet.worked import worked

_TWO_TO_ACE = "A K Q J 10 9 8 7 6 5 4 3 2"
_THREE_TO_ACE = "A K Q J 10 9 8 7 6 5 4 3"


def players(rules: RuleSet) -> Section:
    """Four players, the decks, the deal."""
    cards = deck(rules.decks)
    hands = plain(
        f"用 {rules.decks} 副牌（含大小王），共 {len(cards)} 张；每人 {rules.hand_size} 张，"
        + (f"余下 {rules.kitty} 张为底牌。" if rules.kitty else "全部发完，没有底牌。"),
        f"{times(rules.decks, 'deck')} with jokers, {len(cards)} cards: {rules.hand_size} to each "
        "player, and "
        + (f"{rules.kitty} left over as the kitty." if rules.kitty else "no kitty is left over."),
    )
    total = sum(CARD_POINTS[card] for card in cards)
    first = Said("第一局由随机的一家先摸", "On the first deal a random player draws first")
    later = {
        FirstDrawer.DECLARER: Said("，以后由庄家先摸。", ", on later deals the declarer."),
        FirstDrawer.RANDOM: Said("，以后每局也都随机。", ", and on every later deal too."),
    }[rules.first_drawer]
    return Section(
        "players",
        Said("牌与座位", "Cards and players"),
        (
            plain(
                f"{SEATS} 人参加，相对而坐的两人为一方。庄家和对家是庄家方，另一方是抓分方。",
                "Four play, partners facing each other. The declarer and partner are the declaring side, "
                "the other two the attackers.",
            ),
            hands,
            plain(
                f"5 每张 5 分，10 和 K 每张 10 分，共 {total} 分。只计抓分方得到的分。",
                f"A 5 is worth 5 points, a 10 or a king 10: {total} in all. "
                "Only what the attackers take is counted.",
            ),
            Paragraph(
                Said(
                    f"轮流摸牌，每次一张。{first.zh}{later.zh}",
                    f"Cards are drawn one at a time in turn. {first.en}{later.en}",
                )
            ),
        ),
    )


def order(rules: RuleSet) -> Section:
    """What is trump, and what beats what."""
    ranks = _THREE_TO_ACE if rules.permanent_twos else _TWO_TO_ACE
    suit = Said("颜色", "colour") if rules.two_colour else Said("花色", "suit")
    twos_zh, twos_en = ("、所有的 2", ", all twos") if rules.permanent_twos else ("", "")
    paragraphs = [
        plain(
            f"每局有一个级数（庄家方正在打的级）。主牌是：大小王、所有级牌{twos_zh}，"
            f"以及主{suit.zh}的全部牌；其余是副牌。主牌压副牌。",
            "Each deal is played at a level, that of the declaring side. Trumps are the jokers, all "
            "cards of "
            f"the level{twos_en} and every card of the trump {suit.en}; all else are side suits. "
            "A trump beats any side suit.",
        )
    ]
    if rules.two_colour:
        paragraphs.append(
            plain(
                "只分两色：♠♣ 为黑，♥♦ 为红，主也是一种颜色。同色同点的牌算相同的牌，可以成对；"
                "王不受此影响。",
                "There are two colours only: ♠♣ black and ♥♦ red, and trump is a colour. Cards of one colour "
                "and rank are identical and can make a pair; jokers are not touched by this.",
            )
        )
    steps = [
        Said("大王", "big joker (BJ)"),
        Said("小王", "little joker (LJ)"),
        Said(f"主级牌（主{suit.zh}的级牌）", f"main level cards (those of the trump {suit.en})"),
        Said("副级牌，彼此一样大", "off level cards, all equal"),
    ]
    if rules.permanent_twos:
        steps += [
            Said(f"主 2（主{suit.zh}的 2）", f"main twos (those of the trump {suit.en})"),
            Said("副 2，彼此一样大", "off twos, all equal"),
        ]
    steps.append(Said(f"主{suit.zh} {ranks}（去掉级牌）", f"trump {suit.en} {ranks}, less the level"))
    paragraphs += [
        Paragraph(Said("主牌从大到小：", "Trumps from high to low:"), steps=tuple(steps)),
        plain(
            f"副牌从大到小：{ranks}（去掉级牌）。",
            f"A side {suit.en} from high to low: {ranks}, less the level.",
        ),
        _no_trump(rules, suit),
        plain("一样大的牌，先出的为大。", "Of equal cards the one played first wins."),
    ]
    return Section("order", Said("牌的大小", "Order of cards"), tuple(paragraphs), worked(rules, "order"))


def _no_trump(rules: RuleSet, suit: Said) -> Paragraph:
    if rules.permanent_twos:
        return plain(
            f"无主时没有主{suit.zh}：级牌彼此一样大，2 也彼此一样大。打 2 时 2 就是级牌。",
            f"In no-trump there is no trump {suit.en}: all level cards are equal, and so are all twos. "
            "At level 2 the twos are the level cards.",
        )
    return plain(
        f"无主时没有主{suit.zh}：主牌只有王和级牌，级牌彼此一样大。",
        f"In no-trump there is no trump {suit.en}: only jokers and level cards are trumps, "
        "and all level cards are equal.",
    )


def shapes(rules: RuleSet) -> Section:
    """Groups, tractors, and which is larger."""
    paragraphs = [_groups(rules)]
    if rules.copies > 1:
        paragraphs += _tractors(rules) if rules.tractors else [_no_tractors()]
        larger = larger_said(rules)
        longer = (
            Said("；同宽的拖拉机长者为大", "; of tractors equally wide the longer is larger")
            if rules.tractors
            else Said("", "")
        )
        paragraphs.append(
            plain(
                f"牌型从大到小：{larger.zh}{longer.zh}。",
                f"Shapes from large to small: {larger.en}{longer.en}.",
            )
        )
    return Section(
        "shapes", Said("牌型与拖拉机", "Shapes and tractors"), tuple(paragraphs), worked(rules, "shapes")
    )


def _groups(rules: RuleSet) -> Paragraph:
    if rules.copies == 1:
        return plain(
            "每张牌只有一张，所以没有对子，也没有拖拉机，都是单张。",
            "Every card exists once, so there are no pairs and no tractors: all are singles.",
        )
    names = [Said("两张相同的牌是对子", "Two identical cards are a pair")]
    if rules.copies == 3:
        names.append(Said("三张相同的也成一组", "three a triple"))
    if rules.copies >= 4:
        names.append(Said("三张或四张相同的也各成一组", "three a triple, four a quad"))
    what = (
        Said("（同色同点才算相同）", " (identical means one colour and rank)")
        if rules.two_colour
        else Said("（花色和点数都同才算相同）", " (identical means one suit and rank)")
    )
    always = (
        Said(
            "一起打出时，相同的牌总算作一组，不能拆开另组：JJQQQ 是三张 Q 加一对 J。",
            "Laid together, identical cards are always one group and are not split to make others: "
            "JJQQQ is a triple and a pair.",
        )
        if rules.copies >= 3
        else None
    )
    joined = Said(
        "，".join(n.zh for n in names) + what.zh + "。", ", ".join(n.en for n in names) + what.en + "."
    )
    return Paragraph(run_on(joined, always))


def _no_tractors() -> Paragraph:
    return plain(
        "这里没有拖拉机：相邻的对子也只是几个对子。",
        "There are no tractors here: pairs in a row are just pairs.",
    )


def _tractors(rules: RuleSet) -> list[Paragraph]:
    groups = {
        2: Said("对子", "pairs"),
        3: Said("对子或三张（宽度相同）", "pairs or triples, of one width"),
        4: Said("对子、三张或四张（宽度相同）", "pairs, triples or quads, of one width"),
    }[rules.copies]
    level = (
        Said(
            "级牌抽走后位置仍空着：打 10 时 J 与 9 不相邻。",
            "The place that the level leaves in a suit stays open: at level 10, J and 9 are not adjacent.",
        )
        if rules.level_gap
        else Said(
            "不在这门里的牌先抽掉：打 10 时 J 与 9 相邻。",
            "Ranks that the suit lacks are taken out first: at level 10, J and 9 are adjacent.",
        )
    )
    told = [
        plain(
            f"同一花色里（主牌算一门）大小相邻的两组以上{groups.zh}构成拖拉机。"
            f"{level.zh}首尾不相接：AA22 不是。",
            f"Two or more {groups.en}, adjacent in one suit (trumps are one suit), make a tractor. "
            f"{level.en} There is no way round the end: AA22 is none.",
        )
    ]
    if rules.adjacency is Adjacency.PRINTED_RANK:
        told.append(
            plain(
                "主牌里的拖拉机例外：只按牌面点数、在同一印刷花色内相邻，A 可在 K 之上，也可在 2 之下；"
                "级牌和 2 也站在牌面的位置上。先比最大的牌面点数（AA22 的 A 算最小），"
                "相同则主花色大于副花色。"
                "大王加小王是最大的拖拉机，且不能更长。",
                "Trump tractors are different: they go by printed rank inside one printed suit, with A "
                "above K or "
                "below 2, and level cards and twos stand at their printed place. The highest printed "
                "rank decides "
                "(the A of AA22 counts lowest), then the trump suit over the others. Big and little jokers "
                "together are the highest tractor, and it grows no longer.",
            )
        )
        return told
    twos = Said("、副 2、主 2", " – off twos – main twos") if rules.permanent_twos else Said("", "")
    top = (
        Said("、小王、大王", " – little joker – big joker")
        if rules.level_joker_adjacent
        else Said("；小王、大王", "; and little joker – big joker")
    )
    told.append(
        plain(
            f"主牌里依次相邻的是：主花色 A{twos.zh}、副级牌、主级牌{top.zh}。"
            + ("" if rules.level_joker_adjacent else "级牌与小王不相邻。")
            + "同一级上有几组时只能用其中一组：两对副级牌不是拖拉机。",
            f"Among trumps the neighbours are: trump A{twos.en} – off level – main level{top.en}. "
            + ("" if rules.level_joker_adjacent else "Level cards and little joker are not adjacent. ")
            + "One rank gives one group only: two pairs of off level cards are no tractor.",
        )
    )
    return told
