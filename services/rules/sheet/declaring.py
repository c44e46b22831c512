"""Sections on setting trump: declaring, nobody declaring, mutiny, the kitty and the bury (RULES §7)."""

from itertools import product

from engine_ext.codes import BIG_JOKER, LITTLE_JOKER
from services.rules.level_cards import strength
from services.rules.mutiny import MUTINY_BELOW
from services.rules.options import Declaring, Fallback, FirstDeclarer, MatchDeclares, RuleSet, Window
from services.rules.sheet.said import Paragraph, Said, Section, plain, run_on, times
from services.rules.sheet.worked import worked


def declaring(rules: RuleSet) -> Section:
    """Who may show what, when, and what it settles."""
    policy = _joker_backed if rules.declaring is Declaring.JOKER_BACKED else _level_cards
    paragraphs = [_window(rules), *policy(rules)]
    if rules.sealed:
        paragraphs.append(
            plain(
                "暗亮：亮主期间别家只知道谁亮了、亮了几张，结束时才看到是什么牌。",
                "Showings are sealed: until declaring is over the others know only who showed, and how "
                "many cards.",
            )
        )
    paragraphs += [*_declarer(rules), _fallback(rules)]
    if rules.mutiny:
        paragraphs.append(
            plain(
                f"暴动：亮主结束后、首次扣底前，抓分方若有人发到的牌不足 {MUTINY_BELOW} 分，可亮牌要求重发；"
                "庄家不变，亮过的主作废，不结算。",
                f"Mutiny: between declaring and the first bury, an attacker who was dealt fewer than "
                f"{MUTINY_BELOW} points may show the hand and claim a redeal. The declarer stays, "
                "declarations "
                "are void, nothing is paid.",
            )
        )
    paragraphs += _redeals(rules)
    return Section(
        "declaring", Said("亮主与坐庄", "Declaring"), tuple(paragraphs), worked(rules, "declaring")
    )


def _redeals(rules: RuleSet) -> list[Paragraph]:
    """The redeals that any seat may claim."""
    hands = []
    if rules.redeal_no_points:
        hands.append(Said("没有分", "no points"))
    if rules.redeal_few_trumps == 1:
        hands.append(Said("没有主牌（无主局不算）", "no trump (not in a no-trump deal)"))
    elif rules.redeal_few_trumps:
        hands.append(
            Said(
                f"主牌不足 {rules.redeal_few_trumps} 张（无主局不算）",
                f"fewer than {rules.redeal_few_trumps} trumps (not in a no-trump deal)",
            )
        )
    if not hands:
        return []
    zh, en = "，或者".join(hand.zh for hand in hands), " or ".join(hand.en for hand in hands)
    return [
        plain(
            f"重发：亮主结束后、首次扣底前，任何一家发到的牌{zh}，可亮牌要求重发；庄家不变，亮过的主作废，不结算。",
            f"Redeal: between declaring and the first bury, any seat that was dealt {en} may show the hand "
            "and claim a redeal. The declarer stays, declarations are void, nothing is paid.",
        )
    ]


def _window(rules: RuleSet) -> Paragraph:
    when = {
        Window.DURING_DEAL: Said(
            "摸牌时就可以亮主，只能亮已经摸到的牌；摸完后仍可亮。",
            "Trump may be declared while cards are drawn, with cards already drawn, and after the last one.",
        ),
        Window.AFTER_DEAL: Said("全部摸完之后才亮主。", "Trump is declared after all cards are drawn."),
    }[rules.window]
    closing = Said(
        "四家都表示不亮，或时间到，亮主结束；有人亮出新的主，其余三家可以再亮。",
        "It is over when all four have passed, or when the time is up; a new declaration lets the three "
        "others "
        "speak again.",
    )
    return Paragraph(run_on(when, closing))


# ---------------------------------------------------------------------------------------------- level_cards


def _level_cards(rules: RuleSet) -> list[Paragraph]:
    suit = Said("颜色", "colour") if rules.two_colour else Said("花色", "suit")
    least, jokers = rules.minimum_cards, rules.minimum_jokers
    what = Said(
        f"亮出至少 {least} 张相同的级牌，它的{suit.zh}就是主。"
        if least > 1
        else f"亮出级牌，它的{suit.zh}就是主。",
        f"Show {'at least ' + str(least) if least > 1 else 'one or more'} identical level cards: "
        f"their {suit.en} becomes trump.",
    )
    kings = (
        Said(
            f"亮出至少 {jokers} 张相同的王，打无主。" if jokers > 1 else "亮出王，打无主。",
            f"Show {'at least ' + str(jokers) if jokers > 1 else 'one or more'} identical jokers for "
            "no-trump.",
        )
        if jokers
        else Said("王不能用来亮主。", "Jokers cannot be shown.")
    )
    told = [Paragraph(run_on(what, kings)), _strengths(rules)]
    told.append(
        plain(
            "反主：任何别家（对家也可以）亮出更强的牌，主就改掉；被反的牌收回手里。",
            "Counter: any other seat, the partner too, may show something stronger, and trump changes. "
            "Overridden cards go back to the hand.",
        )
    )
    told.append(_own(rules))
    if rules.partner_reinforce:
        told.append(
            plain(
                "对家保：亮主者的对家可以补上相同的牌，合并计张数；亮主仍算原来那家的。",
                "The partner may add identical cards: they count together, and the declaration stays "
                "whose it was.",
            )
        )
    if rules.equal_overrides:
        told.append(
            plain(
                "后翻为准：别家亮出同样张数、同一种类（级牌对级牌，王对王）的牌也能改主；"
                "同一家同样的牌一局只能亮一次。",
                "The last flip wins: another seat's showing of equal count and kind (level cards over level "
                "cards, jokers over jokers) overrides too; no seat repeats a showing within a deal.",
            )
        )
    return told


def _strengths(rules: RuleSet) -> Paragraph:
    """All showings by strength, computed by the rule that judges them."""
    level = 0
    cards = [(level, n) for n in range(rules.minimum_cards, rules.copies + 1)]
    if rules.minimum_jokers:
        kinds = (LITTLE_JOKER, BIG_JOKER) if rules.jokers_ranked else (LITTLE_JOKER,)
        cards += list(product(kinds, range(rules.minimum_jokers, rules.decks + 1)))
    cards.sort(key=lambda shown: strength(rules, *shown))
    names = {
        level: Said("张级牌", "level card"),
        LITTLE_JOKER: Said("张小王", "little joker") if rules.jokers_ranked else Said("张王", "joker"),
        BIG_JOKER: Said("张大王", "big joker"),
    }
    zh = " < ".join(f"{count} {names[card].zh}" for card, count in cards)
    en = " < ".join(times(count, names[card].en) for card, count in cards)
    if len(cards) == 1:
        return plain(f"亮主只有一种：{zh}。", f"There is one kind of showing: {en}.")
    return plain(f"由弱到强：{zh}。", f"From weak to strong: {en}.")


def _own(rules: RuleSet) -> Paragraph:
    more = (
        Said("自保：已亮的一家可以再添相同的牌。", "Who has declared may show more of the same card.")
        if rules.reinforce
        else Said("已亮的一家不能再添牌自保。", "Who has declared may not add to it.")
    )
    change = (
        Said(
            "自反：也可以用更强的牌改成别的主。",
            "They may also change to another trump by a stronger showing of their own.",
        )
        if rules.self_counter
        else Said("不能自反：自己亮的主自己不能改。", "They may not counter their own declaration.")
    )
    return Paragraph(run_on(more, change))


# --------------------------------------------------------------------------------------------- joker_backed


def _joker_backed(_: RuleSet) -> list[Paragraph]:
    return [
        plain(
            "报主要一张级牌配一张同色的王：大王配红桃、方块，小王配黑桃、梅花。单亮王不算报主。",
            "To declare, show a level card with a joker of its colour: the big joker for ♥ and ♦, the "
            "little one "
            "for ♠ and ♣. Jokers alone do not open.",
        ),
        plain(
            "反主要两张相同的级牌配一张同色的王，或者两张相同的王（打无主）。由小到大：一对级牌 < 一对小王 < "
            "一对大王。不能反自己报的主，别人反过之后才可以再反。",
            "To counter, show two identical level cards with a joker of their colour, or two identical "
            "jokers for "
            "no-trump. It must rise: pair of level cards < two little jokers < two big jokers. Nobody "
            "counters "
            "what is their own, only what another has put over it.",
        ),
        plain(
            "定主：一开始就用一对级牌配王报主，则只有无主可以反。",
            "Locked: who opens with the pair and its joker at once can be countered by no-trump only.",
        ),
        plain(
            "第一局：先报主者为庄，拿底牌之前可以反主。以后各局：摸牌时只有庄家方两人可以报主，庄家不变；"
            "两人都不报，抓分方才可以报，先报者当庄，双方换位，级数不变。",
            "First deal: the first to declare opens the bidding, and counters come before the kitty is "
            "taken. "
            "Later deals: while cards are drawn only the declaring side may declare, and the declarer "
            "stays. When "
            "both have passed after the last card, the attackers may: the first to show becomes "
            "declarer, the "
            "sides change roles, the level stays.",
        ),
        plain(
            "反主炒底：以后各局每次扣底之后，从扣底者的下家起轮流可以反主（必须更大）；反者改主，拿起底牌重扣。"
            "三家连续不反为止。庄家和首攻不变。翻底定主后各家也都可以反。",
            "On later deals counters follow each bury: from the seat after who buried, in turn and "
            "rising. Who "
            "counters changes trump, takes the kitty and buries again, until three in a row have passed. The "
            "declarer and the first lead stay. After a turned card every seat may counter.",
        ),
    ]


# -------------------------------------------------------------------------------------- what it comes to


def _declarer(rules: RuleSet) -> list[Paragraph]:
    first = {
        FirstDeclarer.FIRST: Said(
            "第一局最先亮主者为庄，后来改主也不换庄。",
            "On the first deal the first to declare is declarer, whoever changes trump later.",
        ),
        FirstDeclarer.LAST: Said(
            "第一局最后亮定主的一家为庄。",
            "On the first deal the seat whose declaration stands at the end is declarer.",
        ),
    }[rules.first_declarer]
    if rules.declaring is Declaring.JOKER_BACKED:
        return [Paragraph(first)]
    later = Said(
        "以后各局庄家由上一局定好，亮主只定花色。",
        "On later deals the declarer is settled by the deal before; declaring sets trump only.",
    )
    return [Paragraph(run_on(first, later))]


def _fallback(rules: RuleSet) -> Paragraph:
    stands = Said("庄家不变；第一局由先摸牌者坐庄。", "The declarer stays, on a first deal who drew first.")
    if rules.fallback is Fallback.NO_TRUMP:
        return Paragraph(
            run_on(Said("无人亮主则打无主。", "If nobody declares, the deal is no-trump."), stands)
        )
    if rules.fallback is Fallback.SPADES:
        suit = Said("黑色", "black") if rules.two_colour else Said("黑桃", "spades")
        text = Said(
            f"无人亮主则{suit.zh}为主。",
            f"If nobody declares, {suit.en} {'is' if rules.two_colour else 'are'} trump.",
        )
        return Paragraph(run_on(text, stands))
    colour = Said("颜色", "colour") if rules.two_colour else Said("花色", "suit")
    turned = Said(
        f"无人亮主则翻开第 {rules.kitty_card} 张底牌，以它的{colour.zh}为主，是王则打无主。",
        f"If nobody declares, kitty card {rules.kitty_card} is turned for all to see: its {colour.en} "
        "is trump, "
        "and a joker means no-trump.",
    )
    if rules.match_declares is MatchDeclares.NEVER:
        return Paragraph(run_on(turned, stands))
    if rules.match_declares is MatchDeclares.ALWAYS:
        twin = Said(
            "手里有同一张牌的一家当这一局的庄（有几家时从先摸牌者数起），级数不变。没有人有时，",
            "The seat that holds the same card is declarer of that deal (of several the first from who "
            "drew first), "
            "at the same level. Where nobody holds it:",
        )
        return Paragraph(run_on(turned, twin, stands))
    first = Said(
        "第一局由手里有同一张牌的一家坐庄（有几家时从先摸牌者数起），没有人有则由先摸牌者坐庄；以后各局庄家不变。",
        "On a first deal the seat that holds the same card is declarer (of several the first from who "
        "drew first), "
        "or who drew first if nobody holds it; later the declarer stays.",
    )
    return Paragraph(run_on(turned, first))


def bury(rules: RuleSet) -> Section:
    """The kitty: who sees it, what may be buried."""
    if not rules.kitty:
        return Section(
            "bury",
            Said("底牌", "The kitty"),
            (plain("没有底牌，不用扣底。", "There is no kitty, and nothing is buried."),),
        )
    limit = (
        Said("什么牌都可以扣，分牌和主牌也行。", "Any cards may be buried, points and trumps too.")
        if rules.bury_points_max is None
        else Said(
            f"什么牌都可以扣，但底牌里的分最多 {rules.bury_points_max} 分。",
            f"Any cards may be buried, but at most {rules.bury_points_max} points.",
        )
    )
    return Section(
        "bury",
        Said("底牌与扣底", "Kitty and bury"),
        (
            Paragraph(
                run_on(
                    Said(
                        f"主定下后，庄家拿起 {rules.kitty} 张底牌，只有自己看得到，再扣下同样多的牌。",
                        f"When trump is settled the declarer takes the {rules.kitty} cards of the "
                        "kitty, unseen by "
                        "the others, and buries as many.",
                    ),
                    limit,
                )
            ),
            plain(
                "扣下的牌打牌期间不能再动，只有最后扣底的人知道；一局打完亮给大家看。",
                "Buried cards stay as they are during play and are known only to who buried last; after "
                "the deal "
                "all see them.",
            ),
        ),
    )
