"""The calls of PresenceService: request → the part that knows → response, and nothing else."""

from typing import Final

from services.lobby.deps import Mirrors
from services.lobby.phrases import PHRASES
from services.lobby.presence import Presence
from services.lobby.reports import Reports
from services.lobby.stays import Stays
from services.lobby.talk import Talk
from services.lobby.whereabouts import Finder
from services.pb.event.v1.event_pb2 import SPECTATORS_LINK, SPECTATORS_PUBLIC
from services.pb.lobby.v1 import presence_service_pb2 as pb
from services.rules.reasons import Reason
from services.shell.errors import RefusedError
from services.shell.renewals import Renewals
from services.shell.rpc import Call, Write

ASKED_MOST: Final = 100
"""Players in one GetPresence."""
_WATCHABLE: Final = (SPECTATORS_LINK, SPECTATORS_PUBLIC)


class PresenceServicer:
    """PresenceService; ``shell.rpc.Guard`` stands before it and answers what it raises."""

    def __init__(
        self,
        mirrors: Mirrors,
        presence: Presence,
        finder: Finder,
        stays: Stays,
        renewals: Renewals,
        talk: Talk,
        reports: Reports,
    ) -> None:
        self._mirrors = mirrors
        self._presence = presence
        self._finder = finder
        self._stays = stays
        self._renewals = renewals
        self._talk = talk
        self._reports = reports

    async def stay(self, request: pb.StayRequest, call: Call, write: Write) -> None:
        """See the proto."""
        await self._stays.stay(call, write)

    async def get_whereabouts(
        self, request: pb.GetWhereaboutsRequest, call: Call
    ) -> pb.GetWhereaboutsResponse:
        """See the proto."""
        return pb.GetWhereaboutsResponse(whereabouts=await self._finder.of(call.player_id))

    async def renew(self, request: pb.RenewRequest, call: Call) -> pb.RenewResponse:
        """See the proto."""
        await self._renewals.renew(call.holder, call.expires_at)
        return pb.RenewResponse(expires_at_ms=call.expires_at * 1000)

    async def get_presence(self, request: pb.GetPresenceRequest, call: Call) -> pb.GetPresenceResponse:
        """See the proto."""
        if len(request.player_ids) > ASKED_MOST:
            raise RefusedError(Reason.TOO_LARGE)
        return pb.GetPresenceResponse(
            players=[self._presence_of(player_id, call.operator) for player_id in request.player_ids],
            online=self._presence.online(call.operator),
        )

    def _presence_of(self, player_id: str, operator: str) -> pb.PlayerPresence:
        """Of somebody of the operator's; of anybody else what is said of who is not online."""
        found = pb.PlayerPresence(player_id=player_id)
        if self._presence.operator_of(player_id) != operator:
            return found
        found.doing = pb.DOING_ONLINE
        place = self._mirrors.places.get(player_id)
        if place is None:
            return found
        if place.table_id:
            found.doing = pb.DOING_PLAYING
            record = self._mirrors.rooms.get(place.room_id)
            if record is not None and record.room.plan.spectators in _WATCHABLE:
                found.table_id = place.table_id
        elif place.ticket_id:
            found.doing = pb.DOING_WAITING
        elif place.room_id:
            found.doing = pb.DOING_IN_ROOM
        return found

    async def say(self, request: pb.SayRequest, call: Call) -> pb.SayResponse:
        """See the proto."""
        await self._talk.say(call.player_id, request.phrase_id)
        return pb.SayResponse()

    async def list_phrases(self, request: pb.ListPhrasesRequest, call: Call) -> pb.ListPhrasesResponse:
        """See the proto."""
        return pb.ListPhrasesResponse(phrases=PHRASES.values())

    async def mute(self, request: pb.MuteRequest, call: Call) -> pb.MuteResponse:
        """See the proto."""
        await self._talk.mute(call.player_id, request.player_id, request.muted)
        return pb.MuteResponse()

    async def report(self, request: pb.ReportRequest, call: Call) -> pb.ReportResponse:
        """See the proto."""
        return pb.ReportResponse(report_id=await self._reports.file(request, call))
