"""What can be said at a table: phrases and emotes for friends and strangers.

The rules of the list: polite, about the game that was or the people there, and nothing that could signal
cards, praise or blame a suit, or ask a partner for a play. Whoever adds one must ask what two partners could
agree that it means; a phrase that makes sense only before a certain play is left out. Everybody at the table
hears everything, so nothing can be said to a partner alone. An id is for ever.
"""

from collections.abc import Mapping
from typing import Final

from services.pb.lobby.v1.presence_service_pb2 import Phrase

_WORDS: Final = (
    ("hello", "大家好！", "Hello, everyone!"),
    ("good_luck", "祝大家好运！", "Good luck, everyone!"),
    ("welcome", "欢迎欢迎！", "Welcome!"),
    ("first_time", "新手上路，请多关照。", "I am new to this; please bear with me."),
    ("ready", "我准备好了。", "I am ready."),
    ("one_moment", "请稍等一下。", "One moment, please."),
    ("back", "我回来了。", "I am back."),
    ("no_hurry", "不着急，慢慢来。", "No hurry, take your time."),
    ("network", "我的网络不太好，请见谅。", "My connection is poor, sorry."),
    ("thanks", "谢谢！", "Thank you!"),
    ("you_are_welcome", "不客气！", "You are welcome!"),
    ("sorry", "不好意思！", "Sorry!"),
    ("no_matter", "没关系。", "Never mind."),
    ("nice", "打得漂亮！", "Nicely played!"),
    ("close", "好险！", "That was close!"),
    ("wow", "太精彩了！", "Wow, what a deal!"),
    ("well_done", "恭喜恭喜！", "Congratulations!"),
    ("bad_luck", "运气差了一点。", "Bad luck."),
    ("next_time", "下一局再来！", "There is always the next deal!"),
    ("good_opponents", "遇到高手了！", "You are strong opponents!"),
    ("good_match", "这场打得真痛快！", "That was a great match!"),
    ("again", "再来一场？", "Another match?"),
    ("last_one", "这是我今天的最后一场。", "This is my last match today."),
    ("goodbye", "再见，下次再玩！", "Goodbye, see you next time!"),
)
_EMOTES: Final = (
    ("emote_smile", "微笑", "smile"),
    ("emote_laugh", "大笑", "laugh"),
    ("emote_wave", "挥手", "wave"),
    ("emote_thumbs_up", "点赞", "thumbs up"),
    ("emote_clap", "鼓掌", "applause"),
    ("emote_bow", "抱拳", "bow"),
    ("emote_tea", "喝茶", "cup of tea"),
    ("emote_sweat", "流汗", "phew"),
    ("emote_surprised", "惊讶", "surprised"),
    ("emote_cry", "大哭", "cry"),
    ("emote_flower", "送花", "flower"),
    ("emote_fireworks", "放烟花", "fireworks"),
)

PHRASES: Final[Mapping[str, Phrase]] = {
    phrase_id: Phrase(phrase_id=phrase_id, zh=zh, en=en, emote=emote)
    for list_, emote in ((_WORDS, False), (_EMOTES, True))
    for phrase_id, zh, en in list_
}
"""By id, in the order in which they are offered."""
