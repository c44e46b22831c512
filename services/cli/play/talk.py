"""Phrases: saying them, and showing what others say."""

from rich.text import Text

from services.cli.play.account import Account
from services.cli.play.screen import paragraph
from services.cli.play.texts import tell
from services.pb.lobby.v1.presence_service_pb2 import (
    ListPhrasesRequest,
    MuteRequest,
    Phrase,
    Said,
    SayRequest,
)


class Talk:
    """What can be said, asked for once."""

    def __init__(self, account: Account) -> None:
        self._account = account
        self._phrases: dict[str, Phrase] = {}
        self._muted: set[str] = set()

    async def say(self, phrase_id: str) -> list[Text]:
        """Say a phrase; without one, the lines that list them.

        Raises:
            Refused: it cannot be said now.
        """
        if phrase_id:
            await self._account.call(self._account.presence.Say, SayRequest(phrase_id=phrase_id))
            return []
        known = await self._known()
        told = " · ".join(f"{phrase.phrase_id} ({self._text(phrase)})" for phrase in known.values())
        return paragraph(tell(self._account.language, "phrases", phrases=told))

    async def heard(self, said: Said, speaker: str) -> list[Text]:
        """What somebody said."""
        phrase = (await self._known()).get(said.phrase_id)
        text = said.phrase_id if phrase is None else self._text(phrase)
        return paragraph(tell(self._account.language, "said", who=speaker, phrase=text))

    async def mute(self, player_id: str, name: str) -> list[Text]:
        """No longer hear somebody, or hear them again who were muted here before.

        Raises:
            Refused: they cannot be muted.
        """
        muted = player_id not in self._muted
        await self._account.call(self._account.presence.Mute, MuteRequest(player_id=player_id, muted=muted))
        self._muted ^= {player_id}
        return paragraph(tell(self._account.language, "muted" if muted else "unmuted", who=name))

    async def _known(self) -> dict[str, Phrase]:
        if not self._phrases:
            answer = await self._account.call(self._account.presence.ListPhrases, ListPhrasesRequest())
            self._phrases = {phrase.phrase_id: phrase for phrase in answer.phrases}
        return self._phrases

    def _text(self, phrase: Phrase) -> str:
        return phrase.zh if self._account.language == "zh" else phrase.en
