"""GraphQL over WebSocket: the graphql-transport-ws protocol, one session for each socket.

https://github.com/enisdenjo/graphql-ws/blob/master/PROTOCOL.md
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine
from time import monotonic
from typing import Any, TypeGuard

import orjson
from starlette.websockets import WebSocket, WebSocketDisconnect

from slotlock.auth.authentication import verify_authorization
from slotlock.auth.tokens import BadTokenError
from slotlock.domain.users.user import Caller
from slotlock.graphql.core.errors import ErrorCode, error_body, log_error
from slotlock.graphql.transport.client_info import (
    MAX_USER_AGENT_LENGTH,
    client_host,
    client_info,
)
from slotlock.graphql.transport.graphql_server import GraphQLServer
from slotlock.graphql.transport.push.direct_writes import find_direct_writes
from slotlock.graphql.transport.push.pushed_responses import SocketWriter
from slotlock.graphql.transport.shutdown import SHUTDOWN_SEND_TIMEOUT_S
from slotlock.graphql.transport.socket_operations import (
    MAX_OPERATIONS,
    SocketClosedError,
    SocketOperations,
)
from slotlock.graphql.transport.token_places import MisplacedTokenError, find_authorization
from slotlock.infrastructure.mongo.client import is_unavailable

PROTOCOL = "graphql-transport-ws"
INIT_TIMEOUT_S = 10.0

# A control frame has at most 125 bytes, two of which are the code (RFC 6455, 5.5).
MAX_REASON_BYTES = 123
GOING_AWAY = 1001
INTERNAL_ERROR = 1011
TRY_AGAIN_LATER = 1013
BAD_REQUEST = 4400
UNAUTHORIZED = 4401
FORBIDDEN = 4403
BAD_SUBPROTOCOL = 4406
INIT_TIMEOUT = 4408
DUPLICATE_SUBSCRIBER = 4409
TOO_MANY_INITS = 4429


class WebSocketSession:
    """One client's socket and the operations on it."""

    def __init__(self, websocket: WebSocket, server: GraphQLServer) -> None:
        self._websocket = websocket
        self._server = server
        direct_writes = find_direct_writes(websocket.scope)
        self._writer = SocketWriter(direct_writes, server.fan_out) if direct_writes else None
        host = client_host(websocket.scope)
        agent = websocket.headers.get("user-agent", "")[:MAX_USER_AGENT_LENGTH]
        client = client_info(host, agent)
        self._operations = SocketOperations(
            server,
            client,
            self._send,
            self._reject,
            self._writer,
            websocket.scope.get("request_id", ""),
        )
        self._authorization = websocket.headers.get("authorization")
        self._initialized = False
        self._acknowledged = False
        self._closed = False
        # A send waits until the client reads; a shutdown sets the deadline of these timeouts.
        self._send_timeouts: list[asyncio.Timeout] = []
        self._init_timer: asyncio.TimerHandle | None = None
        self._timers: list[asyncio.TimerHandle] = []
        self._close_tasks: list[asyncio.Task[None]] = []
        # Run in reverse order when the socket has closed.
        self._cleanup: list[Callable[[], object]] = []
        # Nothing reads the headers any more, but the scope lives as long as the socket.
        websocket.scope["headers"].clear()

    async def serve(self) -> None:
        """Handle messages until the socket closes, then end every operation."""
        accepted = PROTOCOL in self._websocket.scope["subprotocols"]
        await self._websocket.accept(PROTOCOL if accepted else None)
        if not accepted:
            await self._close(BAD_SUBPROTOCOL, f"The subprotocol is {PROTOCOL}")
            return
        self._init_timer = self._call_later(INIT_TIMEOUT_S, self._close_uninitialized)
        self._cleanup.append(self._server.shutdown.register(self._close_for_shutdown))
        if self._server.shutdown.has_started:
            await self._close_for_shutdown()
        try:
            while not self._closed:
                await self._handle(await self._receive())
                await asyncio.sleep(0)  # many messages can arrive at once: let other tasks run
        except (SocketClosedError, WebSocketDisconnect):
            pass
        except Exception as error:
            log_error("a socket failed", error)
            # Clients do not reconnect after 1011, so an unavailable MongoDB closes with 1013.
            code = TRY_AGAIN_LATER if is_unavailable(error) else INTERNAL_ERROR
            await self._close(code, "Something went wrong on our side")
        finally:
            await self._clean_up()

    async def _receive(self) -> dict[str, Any]:
        event = await self._websocket.receive()
        if event["type"] == "websocket.disconnect":
            raise SocketClosedError
        try:
            message = orjson.loads(event.get("text") or b"")
        except (orjson.JSONDecodeError, RecursionError):
            message = None
        if not isinstance(message, dict):
            await self._close(BAD_REQUEST, "A message is a JSON object in a text frame")
            raise SocketClosedError
        return message

    async def _handle(self, message: dict[str, Any]) -> None:
        match message.get("type"):
            case "connection_init":
                await self._initialize(message.get("payload"))
            case "ping" if _is_object_or_null(message.get("payload")):
                await self._send({"type": "pong"})
            case "pong" if _is_object_or_null(message.get("payload")):
                pass
            case "subscribe":
                await self._subscribe(message.get("id"), message.get("payload"))
            case "complete" if _is_operation_id(message.get("id")):
                self._operations.complete(message["id"])
            case _:
                await self._close(BAD_REQUEST, "The type is unknown, or a field is missing")

    async def _initialize(self, payload: object) -> None:
        if self._initialized:
            await self._close(TOO_MANY_INITS, "Too many initialisation requests")
            return
        self._initialized = True
        if self._init_timer is not None:
            self._init_timer.cancel()
            self._init_timer = None
        if not _is_object_or_null(payload):
            await self._close(BAD_REQUEST, "The payload is an object or null")
            return
        try:
            query_string = self._websocket.scope.get("query_string", b"")
            authorization = find_authorization(payload or {}, self._authorization, query_string)
        except MisplacedTokenError as error:
            await self._close(BAD_REQUEST, str(error))
            return
        if authorization is not None and not isinstance(authorization, str):
            await self._reject("The authorization is 'Bearer' and an access token")
            return
        self._authorization = authorization
        token = verify_authorization(self._server.auth, authorization)
        identity = await self._server.load_identity(token)
        if isinstance(identity, BadTokenError):
            await self._reject(str(identity))
            return
        if isinstance(identity, Caller) and not self._bind_to_session(identity):
            await self._close(TRY_AGAIN_LATER, "You have too many open sockets")
            return
        await self._send({"type": "connection_ack"})
        self._acknowledged = True

    def _bind_to_session(self, caller: Caller) -> bool:
        """Close the socket when the token or the session ends; False if the user has too many."""
        permit = contextlib.ExitStack()
        self._cleanup.append(permit.close)
        if not permit.enter_context(self._server.streams_per_user.acquire(caller.user_id)):
            return False
        token_lifetime = caller.expires_at - self._server.auth.now()
        self._timers.append(self._call_later(token_lifetime.total_seconds(), self._close_expired))
        unregister = self._server.session_streams.register(caller, self._on_session_end)
        self._cleanup.append(unregister)
        return True

    async def _subscribe(self, operation_id: object, payload: object) -> None:
        if not self._acknowledged:
            await self._close(UNAUTHORIZED, "Unauthorized")
        elif not _is_operation_id(operation_id):
            await self._close(BAD_REQUEST, "The id of an operation is a string")
        elif not _is_subscribe_payload(payload):
            await self._close(BAD_REQUEST, "The payload is a GraphQL request")
        elif operation_id in self._operations:
            await self._close(DUPLICATE_SUBSCRIBER, f"Subscriber for {operation_id} already exists")
        elif self._operations.is_full:
            text = f"A socket carries at most {MAX_OPERATIONS} operations at once."
            errors = [error_body(ErrorCode.LIMIT_EXCEEDED, text)]
            await self._operations.send_errors(operation_id, errors)
        else:
            self._operations.start(operation_id, payload, self._authorization)

    async def _send(self, message: dict[str, Any]) -> None:
        # Waits for a slow client: events that it misses meanwhile are skipped, not queued.
        if self._closed:
            raise SocketClosedError
        try:
            await self._wait_until_sent(self._websocket.send_text(orjson.dumps(message).decode()))
        except (WebSocketDisconnect, RuntimeError, OSError):
            raise SocketClosedError from None

    async def _reject(self, reason: str) -> None:
        await self._close(FORBIDDEN, reason)

    async def _close(self, code: int, reason: str) -> None:
        if self._closed:
            return
        self._stop_sending()
        shortened = reason.encode()[:MAX_REASON_BYTES].decode(errors="ignore")
        with contextlib.suppress(WebSocketDisconnect, RuntimeError, OSError):
            await self._wait_until_sent(self._websocket.close(code, shortened))

    async def _wait_until_sent(self, send: Awaitable[None]) -> None:
        """Wait until the client reads; during a shutdown at most SHUTDOWN_SEND_TIMEOUT_S.

        Raises:
            TimeoutError: the client did not read in time.
        """
        stopping = self._server.shutdown.has_started
        try:
            async with asyncio.timeout(SHUTDOWN_SEND_TIMEOUT_S if stopping else None) as timeout:
                self._send_timeouts.append(timeout)
                try:
                    await send
                finally:
                    self._send_timeouts.remove(timeout)
        except TimeoutError:
            self._stop_sending()  # further sends would wait as long again
            raise

    def _stop_sending(self) -> None:
        self._closed = True
        if self._writer is not None:
            self._writer.close()

    async def _clean_up(self) -> None:
        self._stop_sending()
        while self._cleanup:
            self._cleanup.pop()()
        for timer in (*self._timers, self._init_timer):
            if timer is not None:
                timer.cancel()
        await self._operations.close()

    def _call_later(
        self, seconds: float, callback: Callable[[], Coroutine[Any, Any, None]]
    ) -> asyncio.TimerHandle:
        return asyncio.get_running_loop().call_later(seconds, self._start, callback)

    def _start(self, callback: Callable[[], Coroutine[Any, Any, None]]) -> None:
        task = asyncio.get_running_loop().create_task(callback())
        self._close_tasks.append(task)
        task.add_done_callback(self._close_tasks.remove)

    def _on_session_end(self) -> None:
        self._timers.append(self._call_later(0, self._close_session_ended))

    async def _close_uninitialized(self) -> None:
        if not self._initialized:
            await self._close(INIT_TIMEOUT, "Connection initialisation timeout")

    async def _close_expired(self) -> None:
        await self._reject("The token has expired.")

    async def _close_session_ended(self) -> None:
        await self._reject("Your session has ended, or your role has changed.")

    async def _close_for_shutdown(self) -> None:
        """Finish queries and mutations, send their results and close the socket."""
        deadline = monotonic() + SHUTDOWN_SEND_TIMEOUT_S
        for timeout in self._send_timeouts:
            if timeout.when() is None:
                timeout.reschedule(deadline)
        await self._operations.finish()
        await self._close(GOING_AWAY, "The server is stopping")


def _is_object_or_null(payload: object) -> TypeGuard[dict[str, Any] | None]:
    return payload is None or isinstance(payload, dict)


def _is_operation_id(operation_id: object) -> TypeGuard[str]:
    return isinstance(operation_id, str) and operation_id != ""


def _is_subscribe_payload(payload: object) -> TypeGuard[dict[str, Any]]:
    """Return whether the fields of a GraphQL request have the right types.

    A request may name its document instead of sending it. If the server does not know it, that
    is an error of this operation only.
    """
    return (
        isinstance(payload, dict)
        and all(isinstance(payload.get(name), str | None) for name in ("query", "operationName"))
        and all(_is_object_or_null(payload.get(name)) for name in ("variables", "extensions"))
    )
