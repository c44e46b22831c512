"""Everything that `shengji play` says, in English and Chinese, in one table. Pure."""

from collections.abc import Mapping
from string import Formatter
from typing import Final

from services.rules.shown import Language

TEXTS: Final[dict[str, tuple[str, str]]] = {
    # Signing in and the way back
    "signed_in": ("Signed in as {name}.", "已登录：{name}。"),
    "founded": (
        "Welcome, {name}. From now on this machine remembers you (profile {profile}).",
        "欢迎，{name}。从现在起本机会记住您（档案 {profile}）。",
    ),
    "guest": (
        "Welcome, {name}. You are a guest: nothing is kept.",
        "欢迎，{name}。您是游客，不保留任何记录。",
    ),
    "resumed_table": ("You are still at a table: going on there.", "您还在一张牌桌上：接着打。"),
    "resumed_room": ("You are still in a room: going on there.", "您还在一个房间里：回到那里。"),
    "resumed_ticket": ("You are still looking for opponents.", "您还在找对手。"),
    "leaving": (
        "Nothing is lost: `shengji play` goes on here.",
        "什么都不会丢：再运行 `shengji play` 即可接着打。",
    ),
    "leaving_guest": (
        "Goodbye. Nobody can go on as this guest; the server plays on in its place.",
        "再见。游客的身份不保留，无法接着打；座位由系统代打。",
    ),
    "lost": ("Connection lost; trying again…", "连接断开，正在重连……"),
    "back": ("Connected again.", "已重新连上。"),
    "gone": ("The connection could not be made: {detail}", "连不上：{detail}"),
    "no_house": (
        "Nobody answers at {lobby}. Start a house with `shengji up` in another terminal, or name one with "
        "--lobby and --table.",
        "{lobby} 没有应答。请先在另一个终端运行 `shengji up`，或用 --lobby 和 --table 指定服务器。",
    ),
    "profile_in_use": (
        "The profile {profile} is in use in another terminal; choose another one with --profile.",
        "档案 {profile} 正在另一个终端里使用；请用 --profile 换一个。",
    ),
    # Rooms
    "room": ("Room", "房间"),
    "invite": (
        "Invite code: friends type `shengji play --join {code}`",
        "邀请码：朋友输入 `shengji play --join {code}`",
    ),
    "seat_row": ("seat {seat}  {who}", "{seat} 号座  {who}"),
    "seat_free": ("(free)", "（空）"),
    "seat_bot": ("bot, {difficulty}", "电脑（{difficulty}）"),
    "standing_people": ("without a seat: {names}", "未入座：{names}"),
    "plan_options": ("changed rules: {options}", "改动的规则：{options}"),
    "plan_stake": ("stake: {stake} chips", "底注：{stake} 筹码"),
    "no_seat": ("Seats are 0, 1, 2 and 3: {usage}.", "座位是 0、1、2、3：{usage}。"),
    "partners": ("seats 0 and 2 are partners, and so are 1 and 3", "0 和 2 号座是一家，1 和 3 号座是一家"),
    "host_mark": ("host", "房主"),
    "you_mark": ("you", "您"),
    "offline": ("offline", "不在线"),
    "host_help": (
        "Commands: start · seat N · stand · swap 1 2 · bots [easy|normal|off] [N] · kick NAME · host NAME · "
        "code (a new one) · rules · say PHRASE · mute NAME · leave. "
        "`start` fills free seats with bots. Ctrl-C keeps the room for two minutes.",
        "命令：start 开始 · seat N 换座 · stand 站起 · swap 1 2 互换 · bots [easy|normal|off] [N] 电脑 · "
        "kick 名字 · host 名字 · code 换邀请码 · rules 规则 · say 短语 · mute 名字 · leave 离开。"
        "start 会用电脑补满空座。Ctrl-C 退出后房间保留两分钟。",
    ),
    "room_help": (
        "Waiting for the host to start. Commands: seat N · stand · rules · say PHRASE · mute NAME · leave",
        "等房主开始。命令：seat N 换座 · stand 站起 · rules 规则 · say 短语 · mute 名字 · leave 离开",
    ),
    "starting": ("The table is being set up…", "正在开桌……"),
    "start_failed": ("The table could not be set up: {reason}", "开不了桌：{reason}"),
    "room_ended": ("The room has ended.", "房间已结束。"),
    "kicked": ("You are no longer in the room.", "您已不在房间里。"),
    "searching": (
        "Looking for opponents ({waiting} waiting, four are needed); quit stops it.",
        "正在找对手（{waiting} 人在等，要凑齐四人）；quit 停止。",
    ),
    "bots_after": (
        "Bots fill in {seconds} s after the first of you began to look.",
        "最先来的人等满 {seconds} 秒后由电脑补位。",
    ),
    "no_bots_after": (
        "Without --bots-after it goes on until four people have come: `shengji play --match --bots-after 30` "
        "lets bots fill in after 30 s.",
        "没有 --bots-after 就一直等到四个人；`shengji play --match --bots-after 30` 表示 30 秒后由电脑补位。",
    ),
    "search_help": (
        "Still looking for opponents. quit stops it; Ctrl-C ends only this program.",
        "还在找对手。quit 停止；Ctrl-C 只关本程序。",
    ),
    "found": ("Opponents found.", "找到对手了。"),
    "no_member": ("Nobody here is called {name}.", "这里没有叫 {name} 的人。"),
    # The table
    "you": ("You", "您"),
    "you_within": ("you", "您"),
    "right": ("Right", "下家"),
    "partner": ("Partner", "对家"),
    "left": ("Left", "上家"),
    "bot": ("{place} bot", "{place}电脑"),
    "easy": ("easy", "简单"),
    "normal": ("normal", "普通"),
    "hard": ("hard", "困难"),
    "master": ("master", "大师"),
    "table_title": ("Shengji · {preset}", "升级 · {preset}"),
    "our_side": ("your side", "您方"),
    "their_side": ("the others", "对方"),
    "deal_title": (
        "Deal {deal} · playing {level} · levels {ours} : {theirs}",
        "第 {deal} 局 · 打 {level} · 级数 {ours} : {theirs}",
    ),
    "levels_note": ("your side : the others", "您方 : 对方"),
    "holder": ("Declarer's place: {who}", "坐庄：{who}"),
    "draw_first": ("First to draw: {who}.", "摸牌，{who}先摸。"),
    "may_declare": ("You may declare: {offers}", "可以亮：{offers}"),
    "declared": ("Declared by {who}: {cards}", "{who}亮主：{cards}"),
    "declared_sealed": ("Declared by {who}: {count} cards, sealed", "{who}扣着亮了 {count} 张"),
    "passed": ("Passed: {who}", "{who}：过"),
    "trump_is": ("Trump is {trump}; declarer: {who}.", "主：{trump}；庄家：{who}。"),
    "turned": ("Nobody declared; kitty card {place} is {card}.", "没人亮主；底牌第 {place} 张是 {card}。"),
    "kitty_taken": ("Kitty taken by {who}", "{who}拿底牌"),
    "buried": ("Kitty buried by {who}", "{who}扣好底牌"),
    "mutinied": ("Redeal claimed by {who}: {cards}", "{who}要求重发：{cards}"),
    "countered": ("Countered by {who}: {cards}; trump is {trump}.", "{who}反主：{cards}；主改为 {trump}。"),
    "expired": ("Time ran out: {who}", "{who}超时"),
    "auto_on": ("Played by the server now: {who}", "{who}由系统代打"),
    "auto_off": ("Back in person: {who}", "{who}回来自己打"),
    "escaped": ("Left for good: {who}", "{who}中途离场"),
    "left_seat": ("Seat left: {who}", "{who}离座"),
    "throw_refused": ("Throw not allowed: {who}, {cards}", "{who}不能甩牌：{cards}"),
    "throw_failed": ("throw of {cards} failed", "甩 {cards} 失败"),
    "blocked_by": ("blocked by {who}", "被{who}拦下"),
    "trick": ("Trick {number}", "第 {number} 轮"),
    "trick_won": (
        "trick to {who} +{points} · attackers {total}",
        "{who}得 {points} 分 · 抓分方共 {total} 分",
    ),
    "comma": (", ", "、"),
    "colon": (": ", "："),
    "remark": (" ({told})", "（{told}）"),
    "kitty_points": ("Kitty {cards}: {points} points", "底牌 {cards}：{points} 分"),
    "kitty_times": ("× {multiplier} for the attackers", "× {multiplier} 归抓分方"),
    "scored": (
        "Attackers {points}: {side} {gain}. Levels {ours} : {theirs}.",
        "抓分方 {points} 分：{side}{gain}。级数 {ours} : {theirs}。",
    ),
    "gain_up": ("+{levels}", "升 {levels} 级"),
    "gain_takes": ("take over", "上台"),
    "voided": ("The deal is void; another follows.", "这一局作废，重新发牌。"),
    "time_given": ("The server was away and gives the time back.", "服务器刚才离开过，时间补回。"),
    "match_won": ("The match is won by your side!", "您方赢了整场！"),
    "match_lost": ("The match is won by the others.", "对方赢了整场。"),
    "match_drawn": ("The match is a draw.", "整场平局。"),
    "closed": ("The table is closed ({why}).", "牌桌已关闭（{why}）。"),
    "to_ready": ("Enter (ready) for the next deal.", "按回车准备下一局。"),
    "to_declare": ("Your declaration: d CARDS, or p to pass.", "亮主：d 牌；不亮：p。"),
    "to_mutiny": ("m claims a redeal, p plays on.", "m 要求重发，p 继续打。"),
    "to_counter": ("Counter: {offers}; or p to pass.", "反主：{offers}；不反：p。"),
    "nothing": ("nothing", "没有"),
    "to_bury": ("Bury {count} cards: b CARDS.", "扣 {count} 张底牌：b 牌。"),
    "to_lead": ("Your lead. Type cards or a number:", "您先出。输入牌或编号："),
    "to_follow": ("Your play. Type cards or a number:", "该您出。输入牌或编号："),
    "more_plays": ("… `more` lists {count} others", "……`more` 列出另外 {count} 种"),
    "plays_cut": ("… and others", "……还有别的"),
    "no_such_play": ("There is no play {number} in the list.", "列表里没有 {number}。"),
    "hand": ("Hand", "手牌"),
    "trumps": ("trumps", "主牌"),
    "no_last": ("No trick has been completed yet.", "还没有打完一轮。"),
    "auto_me_on": (
        "The server plays for you, even while you are away; `auto` takes it back.",
        "由系统代您打牌，您离开时也继续；再输入 `auto` 收回。",
    ),
    "auto_me_away": (
        "The server plays for you, as your turns ran out; `auto`, or any play, takes it back.",
        "您多次超时，由系统代您打牌；输入 `auto` 或出牌即可收回。",
    ),
    "auto_me_off": ("You play yourself again.", "您重新自己打。"),
    "said": ("{who}: “{phrase}”", "{who}：“{phrase}”"),
    "phrases": ("say …: {phrases}", "say …：{phrases}"),
    "muted": ("Muted: {who}; `mute {who}` again undoes it.", "已静音：{who}；再输入 `mute {who}` 取消。"),
    "unmuted": ("No longer muted: {who}", "已取消静音：{who}"),
    "not_now": ("That cannot be done now. ? tells what can.", "现在不能这样。输入 ? 看能做什么。"),
    "mistyped": (
        "“{text}” is neither a card nor a command. ? helps.",
        "“{text}”不是牌也不是命令。输入 ? 看帮助。",
    ),
    "owed": ("Your hand owes: {owed}", "须跟出：{owed}"),
    "quit_escape": (
        "The match is not over: leaving it is an escape (what that costs, `rules` says). "
        "Leave for good? (y/n; Ctrl-C only stops this program)",
        "整场还没打完：现在离开算逃跑（后果见 rules 规则）。真的离开吗？（y/n；Ctrl-C 只关本程序）",
    ),
    "left_table": ("You have left the table.", "您已离开牌桌。"),
    "ask_again": ("Play again with the same four? (y/n)", "同样四人再来一场？（y/n）"),
    "wait_again": ("Waiting for the others…", "等其他人……"),
    "bye": ("Goodbye.", "再见。"),
    "clock": ("{seconds} s", "{seconds} 秒"),
    "turn_of": ("turn: {who}", "轮到：{who}"),
    "attackers": ("attackers {points}", "抓分方 {points} 分"),
    "help": (
        "Cards: S♠ H♥ C♣ D♦ and the rank, such as S7 S7 or s77, H10, BJ, LJ; or a number of the list. "
        "d CARDS declare · p pass · b CARDS bury · m redeal · c CARDS counter · Enter ready · hand · last · "
        "more · rules · auto · say PHRASE · mute NAME · quit. Ctrl-C stops the program and loses nothing.",
        "牌：S♠ H♥ C♣ D♦ 加点数，如 S7 S7 或 s77、H10、BJ 大王、LJ 小王；或列表里的编号。"
        "d 牌 亮主 · p 不亮 · b 牌 扣底 · m 重发 · c 牌 反主 · 回车 准备 · hand 手牌 · last 上一轮 · "
        "more 更多出法 · rules 规则 · auto 代打 · say 短语 · mute 名字 · quit 离开。"
        "Ctrl-C 只关程序，什么都不丢。",
    ),
    "spades": ("spades ♠", "黑桃 ♠"),
    "hearts": ("hearts ♥", "红桃 ♥"),
    "clubs": ("clubs ♣", "梅花 ♣"),
    "diamonds": ("diamonds ♦", "方块 ♦"),
    "black": ("black ♠♣", "黑色 ♠♣"),
    "red": ("red ♥♦", "红色 ♥♦"),
    "no_trump": ("no-trump", "无主"),
    "close_finished": ("finished", "打完了"),
    "close_abandoned": ("nobody came back", "长时间没有人"),
    "close_commit_cap": ("it has gone on for as long as a table can", "到了记录上限"),
    "close_empty": ("everybody left", "人都走了"),
    "close_unfunded": ("a seat can no longer cover its stake", "有座位筹码不足"),
}
"""(English, Chinese) of every text, with named places in braces."""


def tell(language: Language, key: str, **values: object) -> str:
    """A text in a language.

    Raises:
        KeyError: there is no such text, or a value is missing.
    """
    english, chinese = TEXTS[key]
    return _spaced(chinese, values) if language == "zh" else english.format(**values)


def _spaced(template: str, values: Mapping[str, object]) -> str:
    """A Chinese text, with a space between its words and a Latin letter or digit of a value."""
    told = ""
    for literal, name, _, _ in Formatter().parse(template):
        told += " " + literal if _meet(told, literal) else literal
        if name is not None:
            value = str(values[name])
            told += " " + value if _meet(told, value) else value
    return told


def _meet(left: str, right: str) -> bool:
    if not left or not right:
        return False
    (one, other), both = (left[-1], right[0]), left[-1] + right[0]
    return one.isalnum() and other.isalnum() and not both.isascii() and (one.isascii() or other.isascii())
