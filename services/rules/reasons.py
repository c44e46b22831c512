"""Every reason for which anything is refused, with what to tell a player in English and Chinese.

One closed enum for all services: the judge prints a reason as it is, gRPC's ErrorInfo in upper case. Reasons
are never renamed or reused. Templates take the named details in braces; a detail that is not given stays
visible as its name, so that a text can always be made.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from services.rules.shown import detail_text, language_of


class Reason(StrEnum):
    """Why something was refused."""

    # What a request says
    UNKNOWN_PRESET = "unknown_preset"
    """No preset has that name."""
    UNKNOWN_KIND = "unknown_kind"
    """The judge knows no such kind of case."""
    UNKNOWN_OPTION = "unknown_option"
    """No rule option has that name."""
    BAD_OPTION = "bad_option"
    """An option has no such value, or not beside the others (RULES §10)."""
    BAD_CARD = "bad_card"
    """A text or index is no card."""
    TOO_MANY_COPIES = "too_many_copies"
    """One list holds more copies of a card than the decks do."""
    BAD_INPUT = "bad_input"
    """A field is missing, of the wrong kind or out of range."""
    BAD_ID = "bad_id"
    """An identifier has not the form of one."""
    TOO_LARGE = "too_large"
    """A message or list is longer than allowed."""

    # Playing cards (RULES §4-§5)
    WRONG_COUNT = "wrong_count"
    """Not as many cards as were led."""
    NOT_IN_HAND = "not_in_hand"
    """A card is not in the hand."""
    MUST_FOLLOW_SUIT = "must_follow_suit"
    """Cards of the led suit are held and were not played."""
    MUST_FOLLOW_SHAPE = "must_follow_shape"
    """A better shape is held than was played."""
    MIXED_SUITS = "mixed_suits"
    """A lead of more than one effective suit."""
    THROW_NOT_ALLOWED = "throw_not_allowed"
    """These rules, or the others' hands, allow no throw now."""

    # The flow of a deal (RULES §7)
    WRONG_PHASE = "wrong_phase"
    """The table is not where this can be done."""
    NOT_YOUR_TURN = "not_your_turn"
    """Another seat is to act."""
    NOT_DRAWN_YET = "not_drawn_yet"
    """A shown card has not been drawn yet."""
    NOT_A_DECLARATION = "not_a_declaration"
    """The cards shown are no declaration under these rules."""
    NOT_STRONG_ENOUGH = "not_strong_enough"
    """The declaration does not beat the standing one."""
    MUST_NOT_COUNTER_OWN = "must_not_counter_own"
    """A seat may not counter its own standing declaration."""
    NOT_ALLOWED_TO_DECLARE = "not_allowed_to_declare"
    """This seat may not declare now (joker_backed)."""
    ALREADY_SHOWN = "already_shown"
    """The seat has made this very showing in this deal (D20)."""
    ALREADY_PASSED = "already_passed"
    """The seat has passed, and nothing was declared since."""
    LOCKED = "locked"
    """Only no-trump counters a locked declaration (定主)."""
    BURY_WRONG_COUNT = "bury_wrong_count"
    """As many cards must be buried as the kitty has."""
    BURY_TOO_MANY_POINTS = "bury_too_many_points"
    """More points than ``bury_points_max``."""
    NO_MUTINY = "no_mutiny"
    """No mutiny can be called by this seat, with this hand, or now."""

    # Tables and seats
    UNKNOWN_TABLE = "unknown_table"
    """There is no such table."""
    TABLE_FULL = "table_full"
    """All four seats are taken."""
    TABLE_CLOSED = "table_closed"
    """The table is closed and takes no commands."""
    SEAT_TAKEN = "seat_taken"
    """Somebody sits there."""
    ALREADY_SEATED = "already_seated"
    """The player has a seat at this table."""
    ALREADY_DONE = "already_done"
    """Nothing would change: it is so already."""
    NOT_SEATED = "not_seated"
    """The player has no seat at this table."""
    NOT_YOURS = "not_yours"
    """The caller has no right to this."""
    CAP_REACHED = "cap_reached"
    """The table has as many commits as a table may have."""
    INSUFFICIENT_FUNDS = "insufficient_funds"
    """The balance does not cover eight base stakes (RULES §9)."""

    # Commands and versions
    STALE_VERSION = "stale_version"
    """The table has moved on since the command was decided."""
    COMMAND_ID_REUSED = "command_id_reused"
    """The same command id came with another body."""

    # Players, rooms, results
    UNKNOWN_PLAYER = "unknown_player"
    """There is no such player."""
    UNKNOWN_ROOM = "unknown_room"
    """There is no such room, or it has ended."""
    UNKNOWN_CODE = "unknown_code"
    """No room has that invite code."""
    UNKNOWN_TICKET = "unknown_ticket"
    """There is no such ticket."""
    UNKNOWN_OPERATOR = "unknown_operator"
    """There is no such operator."""
    UNKNOWN_PHRASE = "unknown_phrase"
    """No phrase has that id."""
    ELSEWHERE = "elsewhere"
    """The player is in another room, in a search or at a table."""
    ROOM_FULL = "room_full"
    """As many people are in the room as it takes."""
    NOT_IN_ROOM = "not_in_room"
    """The player is not in the room."""
    NOT_HOST = "not_host"
    """Only the room's host can do that."""
    KICKED = "kicked"
    """The host has sent the player away."""
    SEATS_NOT_FILLED = "seats_not_filled"
    """A seat is still free."""
    ALREADY_MATCHED = "already_matched"
    """The ticket has been matched."""
    SIGN_IN_FAILED = "sign_in_failed"
    """The secret is not the right one."""
    TOKEN_REUSED = "token_reused"
    """A refresh token was used twice, so its sign-in has ended."""
    ALREADY_LINKED = "already_linked"
    """The device or user belongs to another player."""
    LAST_WAY_IN = "last_way_in"
    """The player could not sign in any more."""
    UNKNOWN_SEASON = "unknown_season"
    """There was no such season."""
    NOT_ARCHIVED = "not_archived"
    """The match is not over, or its log has not been archived yet."""
    ARCHIVE_DAMAGED = "archive_damaged"
    """An archive does not verify."""

    # Services
    UNAUTHENTICATED = "unauthenticated"
    """No valid token."""
    RATE_LIMITED = "rate_limited"
    """Too many requests."""
    BUSY = "busy"
    """At its limit; the same request may succeed in a moment."""
    UNAVAILABLE = "unavailable"
    """Out of reach for now; the outcome of a command may be unknown until it is repeated."""
    CANNOT_RECORD = "cannot_record"
    """Nothing can be recorded, so nothing is accepted."""
    SLOW_READER = "slow_reader"
    """A watcher fell too far behind and was cut off; it may resume."""
    DRAINING = "draining"
    """This process is stopping; another serves."""
    INTERNAL = "internal"
    """A fault of the service."""


TEXTS: Final[Mapping[Reason, tuple[str, str]]] = {
    Reason.UNKNOWN_PRESET: (
        "There is no preset {preset}; GetRules and `shengji rules` list them all.",
        "没有名为 {preset} 的预设规则；GetRules 和 `shengji rules` 会列出全部。",
    ),
    Reason.UNKNOWN_KIND: ("There is no kind {kind}.", "没有 {kind} 这种题型。"),
    Reason.UNKNOWN_OPTION: (
        "The rules have no option {option}; `shengji rules PRESET --options` lists them all.",
        "规则里没有 {option} 这个选项；`shengji rules 预设名 --options` 列出全部。",
    ),
    Reason.BAD_OPTION: (
        "The option {option} cannot be so: {detail}.",
        "选项 {option} 不能这样设：{detail}。",
    ),
    Reason.BAD_CARD: ("{card} is no card.", "{card} 不是一张牌。"),
    Reason.TOO_MANY_COPIES: (
        "There are more copies of {card} than the decks hold.",
        "{card} 的张数比整副牌里的还多。",
    ),
    Reason.BAD_INPUT: ("The field {field} {detail}.", "字段 {field} 有误：{detail}。"),
    Reason.BAD_ID: ("“{id}” is no valid identifier.", "“{id}”不是有效的标识。"),
    Reason.TOO_LARGE: ("That is more than can be taken at once; send less.", "内容太大，请减少后再发。"),
    Reason.WRONG_COUNT: ("Play exactly {count} cards.", "须出 {count} 张牌。"),
    Reason.NOT_IN_HAND: ("You do not hold {card}.", "您手里没有 {card}。"),
    Reason.MUST_FOLLOW_SUIT: (
        "You still hold cards of the suit that was led; play those first.",
        "您还有首家这门花色的牌，要先跟这门花色。",
    ),
    Reason.MUST_FOLLOW_SHAPE: (
        "Follow the shape that was led: your hand can, and so must, play {owed}.",
        "要跟牌型：您手里有，须跟出 {owed}。",
    ),
    Reason.MIXED_SUITS: (
        "A lead is of one suit; level cards and jokers count as trumps.",
        "首家只能出同一门花色的牌；级牌和王都算主牌。",
    ),
    Reason.THROW_NOT_ALLOWED: (
        "A throw is not allowed now; lead one single, group or tractor.",
        "现在不能甩牌，请只出一组：单张、对子、拖拉机等。",
    ),
    Reason.WRONG_PHASE: ("That cannot be done at this point of the game.", "牌局进行到这里，不能这样做。"),
    Reason.NOT_YOUR_TURN: ("It is not your turn yet.", "还没轮到您。"),
    Reason.NOT_DRAWN_YET: ("You have not drawn {card} yet.", "您还没摸到 {card}。"),
    Reason.NOT_A_DECLARATION: (
        "Under these rules these cards declare nothing.",
        "按这张桌的规则，这些牌不能亮主。",
    ),
    Reason.NOT_STRONG_ENOUGH: (
        "This does not beat the declaration that stands; show something stronger.",
        "压不过已亮的主，要亮更强的牌才行。",
    ),
    Reason.MUST_NOT_COUNTER_OWN: (
        "The standing declaration is yours; these rules do not let you change it.",
        "现在的主是您亮的，按规则不能自己改。",
    ),
    Reason.NOT_ALLOWED_TO_DECLARE: (
        "Your side may not declare now; the declaring side comes first.",
        "现在还不能由您报主，庄家方先报。",
    ),
    Reason.ALREADY_SHOWN: (
        "You have shown these cards in this deal; they count only once.",
        "这一局您已经亮过这些牌，不能再亮一次。",
    ),
    Reason.ALREADY_PASSED: (
        "You have passed; you may speak again when somebody declares.",
        "您已经表示不亮；有人再亮主时您才能再亮。",
    ),
    Reason.LOCKED: ("Trump is locked; only no-trump counters it.", "已经定主，只能用无主来反。"),
    Reason.BURY_WRONG_COUNT: ("Bury exactly {count} cards.", "须扣 {count} 张底牌。"),
    Reason.BURY_TOO_MANY_POINTS: (
        "At most {count} points may be buried.",
        "底牌里最多只能扣 {count} 分。",
    ),
    Reason.NO_MUTINY: (
        "You cannot claim a redeal: it is for poor hands by the table's rules, before the first bury.",
        "不能要求重发：只有本桌规则所说的差牌，并且在首次扣底之前才可以。",
    ),
    Reason.UNKNOWN_TABLE: ("There is no such table.", "没有这张牌桌。"),
    Reason.TABLE_FULL: ("All four seats are taken.", "四个座位都有人了。"),
    Reason.TABLE_CLOSED: ("This table is closed.", "这张牌桌已经关闭。"),
    Reason.SEAT_TAKEN: ("Somebody sits there; choose another seat.", "这个座位有人了，请换一个。"),
    Reason.ALREADY_SEATED: ("You sit at this table already.", "您已经坐在这张桌上了。"),
    Reason.ALREADY_DONE: ("Nothing to do: it is so already.", "已经是这样了，不用再做。"),
    Reason.NOT_SEATED: ("You have no seat at this table.", "您在这张桌上没有座位。"),
    Reason.NOT_YOURS: ("You may not do that here.", "您不能在这里这样做。"),
    Reason.CAP_REACHED: (
        "This table has gone on for as long as a table can.",
        "这张牌桌已经到了记录的上限。",
    ),
    Reason.INSUFFICIENT_FUNDS: (
        "You need {amount} chips to sit down here.",
        "在这里入座至少要有 {amount} 筹码。",
    ),
    Reason.STALE_VERSION: (
        "The game has moved on since you decided; look again.",
        "您决定之后牌局又有变化，请看过再出。",
    ),
    Reason.COMMAND_ID_REUSED: (
        "This command id was used for something else; make a new one.",
        "这个指令编号已用于别的操作，请换一个。",
    ),
    Reason.UNKNOWN_PLAYER: ("There is no such player.", "没有这位玩家。"),
    Reason.UNKNOWN_ROOM: ("There is no such room any more.", "没有这个房间，或者它已经结束。"),
    Reason.UNKNOWN_CODE: ("No room has that invite code.", "没有房间用这个邀请码。"),
    Reason.UNKNOWN_TICKET: ("That search for opponents is over.", "没有这次匹配，或者它已经结束。"),
    Reason.UNKNOWN_OPERATOR: ("There is no operator of that name.", "没有这个名字的运营方。"),
    Reason.UNKNOWN_PHRASE: ("There is no such phrase.", "没有这句话或这个表情。"),
    Reason.ELSEWHERE: (
        "You are already somewhere else: {place}. Leave there first.",
        "您还在别处（{place}），请先离开那里。",
    ),
    Reason.ROOM_FULL: ("The room is full.", "房间人数已满。"),
    Reason.NOT_IN_ROOM: ("You are not in this room.", "您不在这个房间里。"),
    Reason.NOT_HOST: ("Only the host can do that.", "只有房主才能这样做。"),
    Reason.KICKED: ("The host has sent you away from this room.", "房主已请您离开这个房间。"),
    Reason.SEATS_NOT_FILLED: ("All four seats must be filled first.", "四个座位都有人才能开始。"),
    Reason.ALREADY_MATCHED: ("Your opponents have been found already.", "已经匹配成功，不能取消。"),
    Reason.SIGN_IN_FAILED: (
        "That did not sign you in; check what you entered.",
        "登录不成功，请检查后再试。",
    ),
    Reason.TOKEN_REUSED: (
        "This sign-in was used from two places and has ended; sign in anew.",
        "这次登录在别处被用过，已失效，请重新登录。",
    ),
    Reason.ALREADY_LINKED: ("That is linked to another player already.", "已经绑定在另一位玩家上。"),
    Reason.LAST_WAY_IN: (
        "That is your only way to sign in; link another one first.",
        "这是您唯一的登录方式，请先绑定别的。",
    ),
    Reason.UNKNOWN_SEASON: ("There is no such season.", "没有这个赛季。"),
    Reason.NOT_ARCHIVED: ("The match is not archived yet.", "这场比赛还没有归档。"),
    Reason.ARCHIVE_DAMAGED: (
        "The record of this match is damaged; somebody has been told.",
        "这场比赛的记录已损坏，已上报处理。",
    ),
    Reason.UNAUTHENTICATED: ("Please sign in again.", "请重新登录。"),
    Reason.RATE_LIMITED: ("Too many requests; wait a moment.", "操作太频繁，请稍等。"),
    Reason.BUSY: ("Very busy now; try again in a moment.", "现在很忙，请稍后再试。"),
    Reason.UNAVAILABLE: (
        "Out of reach for now; try the same again, it is done once at most.",
        "暂时连不上；可以原样重试，不会重复执行。",
    ),
    Reason.CANNOT_RECORD: (
        "Nothing can be recorded now, so nothing was done; try later.",
        "暂时无法记录，操作没有生效，请稍后再试。",
    ),
    Reason.SLOW_READER: (
        "Your connection fell behind; connect again to go on where you were.",
        "连接太慢跟不上了；重新连接即可从原处继续。",
    ),
    Reason.DRAINING: ("This server is stopping; connect again.", "这台服务器正在停止，请重新连接。"),
    Reason.INTERNAL: ("Something went wrong on our side.", "我们这边出了问题。"),
}
"""(English, Chinese) templates of every reason."""


class _Shown(dict[str, str]):
    """Details of a text; one that is missing shows as its name in braces."""

    def __missing__(self, key: str) -> str:
        return "{" + key + "}"


def message(reason: Reason, locale: str = "en", **details: object) -> str:
    """The text of a refusal for a player; locale "zh…" gives Chinese, anything else English.

    Details named ``card`` and ``owed`` are told as people read them: ``♠10``, ``tractor of 2 pairs``.
    """
    language = language_of(locale)
    english, chinese = TEXTS[reason]
    told = {name: detail_text(name, value, language) for name, value in details.items()}
    return (chinese if language == "zh" else english).format_map(_Shown(told))
