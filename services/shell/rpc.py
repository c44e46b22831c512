"""What surrounds every call: who calls, how often, how long it took, and how it is refused.

The guard wraps each handler once, when the server is built; an interceptor would build a handler anew for
every call, and this is the hot path of the house.
"""

import keyword
import time
from collections.abc import Awaitable, Callable, Container, Mapping
from typing import Any, Final, NamedTuple

import grpc
from google.protobuf.descriptor import ServiceDescriptor
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass
from prometheus_client import Counter

from services.game.ids import SERVICE_PREFIX
from services.rules.reasons import Reason
from services.shell.errors import DETAILS_KEY, RefusedError, code_of, locale_of, status_of, unavailable
from services.shell.limits import Buckets, address_of, network_of
from services.shell.log_store import Unavailable
from services.shell.logs import Log, fault_of
from services.shell.metrics import RpcMetrics
from services.shell.tokens import BOT_PREFIX, Identity, TokenError, Verifier
from services.shell.trace import TRACEPARENT, accept, trace_id

_BEARER: Final = "Bearer "
Write = Callable[[bytes], Awaitable[None]]
"""Sends one serialised message of a stream; waits while the client does not read."""


Context = grpc.aio.ServicerContext[Any, Any]
ByKey = Callable[[str, str], Awaitable[str]]
"""Says which operator's an API key is: ``(key, address) -> name``; raises ``RefusedError`` for a bad one."""
_UNLIMITED: Final = (BOT_PREFIX, SERVICE_PREFIX)


class Call(NamedTuple):
    """Who calls, and since when."""

    player_id: str
    """Empty for calls that need no token, and for those with an operator's API key."""
    expires_at: int
    """When the token ends, seconds of Unix time; 0 without a token."""
    started: float
    """``time.perf_counter()`` when the call reached the handler."""
    accept_language: str = ""
    """The header as it came; ``errors.locale_of`` reads it."""
    operator: str = ""
    """The operator that the player belongs to, or whose API key it is; empty for the house."""
    address: str = ""
    """Where the call came from, without the port; of a gateway's callers all the same."""
    scope: str = ""
    """What the token is for, words separated by spaces."""

    @property
    def holder(self) -> str:
        """Whose later tokens prolong a stream: the player's, as long as it belongs to the same operator."""
        return f"{self.player_id} {self.operator}" if self.operator else self.player_id


Admit = Callable[[Any, Context, Buckets, float], Call | Awaitable[Call]]
"""Lets a call in: ``(request, context, bucket, started)``; raises ``RefusedError`` otherwise."""


class Guard:
    """Authenticates, limits, measures and logs the calls of one service."""

    def __init__(
        self,
        domain: str,
        verifier: Verifier,
        metrics: RpcMetrics,
        log: Log,
        strangers: Buckets,
        operators: Buckets | None = None,
        *,
        refusals: Mapping[str, Counter] | None = None,
    ) -> None:
        """Guard a service.

        Args:
            domain: of ErrorInfo, such as "shengji.table".
            verifier: knows whose tokens count.
            metrics: counts the calls.
            log: gets a line for each call at level debug, for each fault at level error.
            strangers: how often one address may come with a token that proves nothing; beyond that, tokens
                not seen before are not even looked at. The same for API keys.
            operators: how often the players of one operator may call, all together; None for no limit. The
                house's own are limited one by one alone.
            refusals: counts refused calls by the values of ``Reason``; None when the service counts them.
        """
        self._domain = domain
        self._verifier = verifier
        self._metrics = metrics
        self._log = log
        self._strangers = strangers
        self._operators = Buckets(0, 1) if operators is None else operators
        self._refusals = refusals

    def handlers(
        self,
        descriptor: ServiceDescriptor,
        servicer: object,
        limits: Mapping[str, Buckets],
        *,
        open_methods: Container[str] = (),
        by_key: ByKey | None = None,
    ) -> grpc.GenericRpcHandler:
        """The guarded handlers of a service.

        Args:
            descriptor: the service; every method of it is served.
            servicer: has one coroutine a method, named in snake_case: ``(request, call) -> response``, or of
                a stream ``(request, call, write) -> None``.
            limits: the buckets of each method, by its name; a caller has one bucket in each. ``bot:`` and
                ``svc:`` callers are not limited: their issuers are the host's own.
            open_methods: those that need no token; their callers are limited by address.
            by_key: given, every other method needs an operator's API key in place of a token, and its callers
                are limited by operator.
        """

        def by_api_key(request: Any, context: Context, bucket: Buckets, started: float) -> Awaitable[Call]:
            assert by_key is not None
            return self._admit_operator(request, context, bucket, started, by_key)

        served: dict[str, grpc.RpcMethodHandler[Any, Any]] = {}
        for method in descriptor.methods:
            handle, bucket = getattr(servicer, _snake(method.name)), limits[method.name]
            admit: Admit = self._admit if by_key is None else by_api_key
            if method.name in open_methods:
                admit = self._admit_anybody
            read = _reader(GetMessageClass(method.input_type))
            if method.server_streaming:
                guarded = self._stream(method.name, handle, bucket, admit)
                served[method.name] = grpc.unary_stream_rpc_method_handler(guarded, request_deserializer=read)
            else:
                served[method.name] = grpc.unary_unary_rpc_method_handler(
                    self._unary(method.name, handle, bucket, admit),
                    request_deserializer=read,
                    response_serializer=GetMessageClass(method.output_type).SerializeToString,
                )
        return grpc.method_handlers_generic_handler(descriptor.full_name, served)

    def _unary(
        self, name: str, handle: Callable[..., Awaitable[Message]], bucket: Buckets, admit: Admit
    ) -> Any:
        calls = self._metrics.methods[name]

        async def serve(request: Message | None, context: Context) -> Message | None:
            started = time.perf_counter()
            try:
                admitted = admit(request, context, bucket, started)
                call = admitted if isinstance(admitted, Call) else await admitted
                response = await handle(request, call)
            except BaseException as error:
                await self._failed(name, request, context, error, started)
                return None
            calls.ended(grpc.StatusCode.OK, time.perf_counter() - started)
            return response

        return serve

    def _stream(
        self, name: str, handle: Callable[..., Awaitable[None]], bucket: Buckets, admit: Admit
    ) -> Any:
        calls = self._metrics.methods[name]

        async def serve(request: Message | None, context: Context) -> None:
            started = time.perf_counter()
            try:
                admitted = admit(request, context, bucket, started)
                call = admitted if isinstance(admitted, Call) else await admitted
                await handle(request, call, context.write)
            except BaseException as error:
                await self._failed(name, request, context, error, started)
                return
            calls.ended(grpc.StatusCode.OK, time.perf_counter() - started)

        return serve

    def _admit(self, request: Message | None, context: Context, bucket: Buckets, started: float) -> Call:
        token, accept_language = _headers(context)
        address = address_of(context.peer())
        identity = self._verifier.recall(token) or self._verify(token, address)
        player_id = identity.player_id
        if not player_id.startswith(_UNLIMITED):
            _take(bucket, player_id)
            if identity.operator:
                _take(self._operators, identity.operator)
        _check(request)
        return Call(
            player_id,
            identity.expires_at,
            started,
            accept_language,
            identity.operator,
            address,
            identity.scope,
        )

    def _admit_anybody(
        self, request: Message | None, context: Context, bucket: Buckets, started: float
    ) -> Call:
        _, accept_language = _headers(context)
        address = address_of(context.peer())
        _take(bucket, network_of(address))
        _check(request)
        return Call("", 0, started, accept_language, "", address)

    async def _admit_operator(
        self, request: Message | None, context: Context, bucket: Buckets, started: float, by_key: ByKey
    ) -> Call:
        key, accept_language = _headers(context)
        address = address_of(context.peer())
        network = network_of(address)
        self._wait(network)
        try:
            operator = await by_key(key, address)
        except RefusedError as error:
            if error.reason is Reason.UNAUTHENTICATED:
                self._strangers.take(network)
            raise
        _take(bucket, operator)
        _check(request)
        return Call("", 0, started, accept_language, operator, address)

    def _verify(self, token: str, address: str) -> Identity:
        network = network_of(address)
        self._wait(network)
        try:
            return self._verifier.verify(token)
        except TokenError as error:
            self._strangers.take(network)
            raise RefusedError(Reason.UNAUTHENTICATED, {"detail": str(error)}) from None

    def _wait(self, network: str) -> None:
        """Refuse to look at what comes from an address that has come with too much that was no good."""
        wait = self._strangers.wait(network)
        if wait:
            raise RefusedError(Reason.RATE_LIMITED, retry_after_s=wait)

    async def _failed(
        self,
        name: str,
        request: Message | None,
        context: Context,
        error: BaseException,
        started: float,
    ) -> None:
        """Count and log a call that did not succeed, then answer it; a cancellation is raised again."""
        seconds = time.perf_counter() - started
        if isinstance(error, Unavailable):
            error = unavailable(error)
        if isinstance(error, RefusedError):
            code = code_of(error.reason)
        elif isinstance(error, Exception):
            code = grpc.StatusCode.INTERNAL
        else:
            code = grpc.StatusCode.CANCELLED
        self._metrics.methods[name].ended(code, seconds)
        if code is grpc.StatusCode.CANCELLED:
            raise error
        refused = error if isinstance(error, RefusedError) else RefusedError(Reason.INTERNAL)
        if self._refusals is not None:
            self._refusals[refused.reason.value].inc()
        trace = trace_id(TRACEPARENT.get())
        if refused is not error:
            fault = fault_of(error)
            self._log.error("fault", rpc=name, fault=fault, table_id=_table_of(request), trace_id=trace)
        self._log.debug(
            "refused",
            rpc=name,
            reason=refused.reason.value,
            code=code.name,
            table_id=_table_of(request),
            trace_id=trace,
            seconds=seconds,
        )
        language = ""
        for key, value in context.invocation_metadata() or ():
            if key == "accept-language":
                language = str(value)
        status = status_of(refused, self._domain, locale_of(language))
        await context.abort(code, status.message, ((DETAILS_KEY, status.SerializeToString()),))


def _headers(context: Context) -> tuple[str, str]:
    """What the call bears (a token or an API key; empty for none), and its accept-language."""
    authorization = accept_language = ""
    for key, value in context.invocation_metadata() or ():
        if key == "authorization":
            authorization = str(value)
        elif key == "accept-language":
            accept_language = str(value)
        elif key == "traceparent":
            TRACEPARENT.set(accept(str(value)))
    return authorization[len(_BEARER) :] if authorization.startswith(_BEARER) else "", accept_language


def _take(bucket: Buckets, caller: str) -> None:
    wait = bucket.take(caller)
    if wait:
        raise RefusedError(Reason.RATE_LIMITED, retry_after_s=wait)


def _check(request: Message | None) -> None:
    if request is None:
        raise RefusedError(Reason.BAD_INPUT, {"field": "request", "detail": "is no message of this method"})


def _reader(message: type[Message]) -> Callable[[bytes], Message | None]:
    def read(data: bytes) -> Message | None:
        """The request, or None when the bytes are none, so that the guard can say so in its own words."""
        try:
            return message.FromString(data)
        except DecodeError:
            return None

    return read


def _snake(name: str) -> str:
    """``CreateTable`` as ``create_table``; ``Pass``, which Python keeps for itself, as ``pass_``."""
    snake = "".join("_" + c.lower() if c.isupper() else c for c in name).lstrip("_")
    return snake + "_" if keyword.iskeyword(snake) else snake


def _table_of(request: Any) -> str:
    """The table that a request names, if it names one by the form of an id."""
    context = getattr(request, "context", request)
    table_id = getattr(context, "table_id", "")
    return table_id if len(table_id) == 30 and table_id.startswith("tbl_") else ""
