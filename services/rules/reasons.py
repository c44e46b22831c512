"""Every reason for which anything is refused, with what to tell a player in English and Chinese.

One closed enum for all services: the judge prints a reason as it is, gRPC's ErrorInfo in upper case. Reasons
are never renamed or reused. Templates take the named details in braces; a detail that is not given stays
visible as its name, so that a text can always be made.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final


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
    Reason.UNKNOWN_PRESET: ("There is no preset {preset}.", "没有名为 {preset} 的规则。"),
    Reason.UNKNOWN_KIND: ("There is no kind {kind}.", "没有 {kind} 这种题型。"),
    Reason.UNKNOWN_OPTION: ("There is no option {option}.", "没有 {option} 这个选项。"),
    Reason.BAD_OPTION: ("The option {option} cannot be so: {detail}.", "选项 {option} 不成立：{detail}。"),
    Reason.BAD_CARD: ("{card} is no card.", "{card} 不是一张牌。"),
    Reason.TOO_MANY_COPIES: (
        "There are more copies of {card} than the decks hold.",
        "{card} 的张数超过了牌副数。",
    ),
    Reason.BAD_INPUT: ("The field {field} is not right: {detail}.", "字段 {field} 有误：{detail}。"),
    Reason.BAD_ID: ("{id} is no valid identifier.", "{id} 不是有效的标识。"),
    Reason.TOO_LARGE: ("That is larger than allowed.", "内容超过允许的大小。"),
    Reason.WRONG_COUNT: ("Play exactly {count} cards.", "须出 {count} 张牌。"),
    Reason.NOT_IN_HAND: ("You do not hold {card}.", "您手中没有 {card}。"),
    Reason.MUST_FOLLOW_SUIT: (
        "Play the cards that you hold of the led suit.",
        "有首家花色的牌须先出该花色。",
    ),
    Reason.MUST_FOLLOW_SHAPE: ("Your hand owes a better shape: {owed}.", "须按牌型跟牌：{owed}。"),
    Reason.MIXED_SUITS: ("A lead must be of one suit.", "首家所出的牌须为同一花色。"),
    Reason.THROW_NOT_ALLOWED: ("You cannot throw several components now.", "现在不能甩牌。"),
    Reason.WRONG_PHASE: ("That cannot be done in this phase.", "当前阶段不能这样做。"),
    Reason.NOT_YOUR_TURN: ("It is not your turn.", "还没有轮到您。"),
    Reason.NOT_DRAWN_YET: ("You have not drawn {card} yet.", "您还没有摸到 {card}。"),
    Reason.NOT_A_DECLARATION: ("These cards declare nothing.", "这些牌不能亮主。"),
    Reason.NOT_STRONG_ENOUGH: ("The standing declaration is stronger.", "不足以反已亮的主。"),
    Reason.MUST_NOT_COUNTER_OWN: ("You cannot counter your own declaration.", "不能自反。"),
    Reason.NOT_ALLOWED_TO_DECLARE: ("You may not declare now.", "现在轮不到您报主。"),
    Reason.ALREADY_SHOWN: ("You have shown this in this deal already.", "本局您已这样亮过。"),
    Reason.ALREADY_PASSED: ("You have passed already.", "您已经不叫。"),
    Reason.LOCKED: ("Trump is locked; only no-trump counters it.", "已经定主，只有无主可反。"),
    Reason.BURY_WRONG_COUNT: ("Bury exactly {count} cards.", "须扣 {count} 张底牌。"),
    Reason.BURY_TOO_MANY_POINTS: ("Bury at most {count} points.", "底牌最多扣 {count} 分。"),
    Reason.NO_MUTINY: ("You cannot call a mutiny.", "现在不能暴动。"),
    Reason.UNKNOWN_TABLE: ("There is no such table.", "没有这张牌桌。"),
    Reason.TABLE_FULL: ("The table is full.", "牌桌已满。"),
    Reason.TABLE_CLOSED: ("The table is closed.", "牌桌已关闭。"),
    Reason.SEAT_TAKEN: ("The seat is taken.", "座位已有人。"),
    Reason.ALREADY_SEATED: ("You have a seat already.", "您已入座。"),
    Reason.ALREADY_DONE: ("It is so already.", "已经是这样了。"),
    Reason.NOT_SEATED: ("You have no seat here.", "您没有入座。"),
    Reason.NOT_YOURS: ("That is not yours to do.", "您无权这样做。"),
    Reason.CAP_REACHED: ("The table has reached its limit.", "牌桌已达上限。"),
    Reason.INSUFFICIENT_FUNDS: ("You need {amount} chips to sit down.", "入座至少需要 {amount} 筹码。"),
    Reason.STALE_VERSION: ("The table has moved on; look again.", "牌局已有变化，请刷新。"),
    Reason.COMMAND_ID_REUSED: ("This command id was used for something else.", "该指令编号已被使用。"),
    Reason.UNAUTHENTICATED: ("Please sign in.", "请先登录。"),
    Reason.RATE_LIMITED: ("Too many requests; slow down.", "请求过于频繁。"),
    Reason.BUSY: ("Busy; try again in a moment.", "繁忙，请稍后再试。"),
    Reason.UNAVAILABLE: ("Not available now; try again.", "暂时不可用，请重试。"),
    Reason.CANNOT_RECORD: ("Nothing can be recorded now; nothing was done.", "暂时无法记录，操作未生效。"),
    Reason.SLOW_READER: ("Your connection fell behind; resume.", "连接过慢，请重新接入。"),
    Reason.DRAINING: ("This server is stopping; connect again.", "服务器正在停止，请重新连接。"),
    Reason.INTERNAL: ("Something went wrong on our side.", "服务器内部错误。"),
}
"""(English, Chinese) templates of every reason."""


class _Shown(dict[str, str]):
    """Details of a text; one that is missing shows as its name in braces."""

    def __missing__(self, key: str) -> str:
        return "{" + key + "}"


def message(reason: Reason, locale: str = "en", **details: object) -> str:
    """The text of a refusal for a player; locale "zh…" gives Chinese, anything else English."""
    english, chinese = TEXTS[reason]
    template = chinese if locale.lower().startswith("zh") else english
    return template.format_map(_Shown({name: str(value) for name, value in details.items()}))
