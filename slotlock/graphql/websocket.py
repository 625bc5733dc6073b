"""GraphQL over WebSocket: the graphql-transport-ws protocol, one object a socket.

https://github.com/enisdenjo/graphql-ws/blob/master/PROTOCOL.md
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import orjson
from starlette.websockets import WebSocket, WebSocketDisconnect

from slotlock.auth.tokens import BadTokenError
from slotlock.domain.people import Caller
from slotlock.graphql.addresses import client_of
from slotlock.graphql.conversation import Conversation
from slotlock.graphql.errors import Code, failure, logged
from slotlock.graphql.messages import is_id, is_object_or_null, is_request
from slotlock.graphql.operations import MAX_OPERATIONS, ClosedError, Operations
from slotlock.stores.mongo import is_away

PROTOCOL = "graphql-transport-ws"
INIT_WITHIN_S = 10.0
# How long a process that stops waits until a client reads what is sent to it.
UNREAD_AT_STOP_S = 3.0

# A control frame has 125 bytes, two of them the code (RFC 6455, 5.5).
MAX_REASON = 123
GOING_AWAY = 1001
INTERNAL_ERROR = 1011
TRY_AGAIN_LATER = 1013
BAD_REQUEST = 4400
UNAUTHORIZED = 4401
FORBIDDEN = 4403
BAD_SUBPROTOCOL = 4406
INIT_TIMEOUT = 4408
DUPLICATE = 4409
TOO_MANY_INITS = 4429


class Socket:
    """One client's socket and the operations on it."""

    def __init__(self, websocket: WebSocket, conversation: Conversation) -> None:
        self._websocket = websocket
        self._conversation = conversation
        self._operations = Operations(conversation, client_of(websocket), self._send, self._reject)
        self._authorization: str | None = None
        self._initialised = False
        self._acknowledged = False
        self._closed = False
        # What is being sent: each waits until the client reads, or for as long as is left.
        self._sending: set[asyncio.Timeout] = set()
        self._timers: list[asyncio.TimerHandle] = []
        self._closing: set[asyncio.Task[None]] = set()
        # What is undone when the socket ends, however it ends.
        self._ending = contextlib.ExitStack()

    async def serve(self) -> None:
        """Read messages until the socket closes, then end every operation."""
        accepted = PROTOCOL in self._websocket.scope["subprotocols"]
        await self._websocket.accept(PROTOCOL if accepted else None)
        if not accepted:
            await self._close(BAD_SUBPROTOCOL, f"The subprotocol is {PROTOCOL}")
            return
        self._in_time(INIT_WITHIN_S, self._close_uninitialised)
        self._conversation.farewells.add(self._say_farewell)
        if self._conversation.stopping.is_set():
            await self._say_farewell()
        try:
            while not self._closed:
                await self._handle(await self._read())
                await asyncio.sleep(0)  # many messages can come in one piece: others have a turn
        except (ClosedError, WebSocketDisconnect):
            pass
        except Exception as error:
            logged("a socket failed", error)
            # 1011 makes clients give up for good, and MongoDB will be back.
            code = TRY_AGAIN_LATER if is_away(error) else INTERNAL_ERROR
            await self._close(code, "Something went wrong on our side")
        finally:
            await self._end_all()

    async def _read(self) -> dict[str, Any]:
        event = await self._websocket.receive()
        if event["type"] == "websocket.disconnect":
            raise ClosedError
        try:
            message = orjson.loads(event.get("text") or b"")
        except (orjson.JSONDecodeError, RecursionError):
            message = None
        if not isinstance(message, dict):
            await self._close(BAD_REQUEST, "A message is a JSON object in a text frame")
            raise ClosedError
        return message

    async def _handle(self, message: dict[str, Any]) -> None:
        match message.get("type"):
            case "connection_init":
                await self._initialise(message.get("payload"))
            case "ping" if is_object_or_null(message.get("payload")):
                await self._send({"type": "pong"})
            case "pong" if is_object_or_null(message.get("payload")):
                pass
            case "subscribe":
                await self._subscribe(message.get("id"), message.get("payload"))
            case "complete" if is_id(message.get("id")):
                self._operations.complete(message["id"])
            case _:
                await self._close(BAD_REQUEST, "Unknown type of message, or a part is missing")

    async def _initialise(self, payload: object) -> None:
        if self._initialised:
            await self._close(TOO_MANY_INITS, "Too many initialisation requests")
            return
        self._initialised = True
        if not is_object_or_null(payload):
            await self._close(BAD_REQUEST, "The payload is an object or null")
            return
        given = {str(key).lower(): value for key, value in (payload or {}).items()}
        authorization = given.get("authorization")
        if authorization is not None and not isinstance(authorization, str):
            await self._reject("The authorization is 'Bearer' and an access token")
            return
        self._authorization = authorization
        identity = await self._conversation.identity(authorization)
        if isinstance(identity, BadTokenError):
            await self._reject(str(identity))
            return
        if isinstance(identity, Caller) and not self._is_theirs(identity):
            await self._close(TRY_AGAIN_LATER, "Too many sockets of this person are open")
            return
        await self._send({"type": "connection_ack"})
        self._acknowledged = True

    def _is_theirs(self, caller: Caller) -> bool:
        """Let it last as long as its person's token and session, if they may have one more."""
        room = self._conversation.streams_per_person.room_for(caller.user_id)
        if not self._ending.enter_context(room):
            return False
        left = caller.expires_at - self._conversation.auth.now()
        self._in_time(left.total_seconds(), self._close_expired)
        streams = self._conversation.auth.streams
        self._ending.callback(streams.begin(caller, lambda: self._in_time(0, self._close_ended)))
        return True

    async def _subscribe(self, operation_id: object, payload: object) -> None:
        if not self._acknowledged:
            await self._close(UNAUTHORIZED, "Unauthorized")
        elif not is_id(operation_id):
            await self._close(BAD_REQUEST, "The id of an operation is a string")
        elif not is_request(payload):
            await self._close(BAD_REQUEST, "The payload is a GraphQL request")
        elif operation_id in self._operations:
            await self._close(DUPLICATE, f"Subscriber for {operation_id} already exists")
        elif self._operations.full:
            text = f"At most {MAX_OPERATIONS} operations at once on a socket."
            errors = [failure(Code.LIMIT_EXCEEDED, text)]
            await self._operations.send_errors(operation_id, errors)
        else:
            self._operations.begin(operation_id, payload, self._authorization)

    async def _send(self, message: dict[str, Any]) -> None:
        # Waits while the client does not read: what it misses meanwhile is left out, not piled up.
        if self._closed:
            raise ClosedError
        try:
            await self._sent(self._websocket.send_text(orjson.dumps(message).decode()))
        except (WebSocketDisconnect, RuntimeError, OSError):
            raise ClosedError from None

    async def _reject(self, reason: str) -> None:
        await self._close(FORBIDDEN, reason)

    async def _close(self, code: int, reason: str) -> None:
        if self._closed:
            return
        self._closed = True
        fitting = reason.encode()[:MAX_REASON].decode(errors="ignore")
        with contextlib.suppress(WebSocketDisconnect, RuntimeError, OSError):
            await self._sent(self._websocket.close(code, fitting))

    async def _sent(self, sending: Awaitable[None]) -> None:
        """Wait until it is sent; once the process stops, not for long. Errors: TimeoutError."""
        stopping = self._conversation.stopping.is_set()
        try:
            async with asyncio.timeout(UNREAD_AT_STOP_S if stopping else None) as limit:
                self._sending.add(limit)
                try:
                    await sending
                finally:
                    self._sending.discard(limit)
        except TimeoutError:
            self._closed = True  # the rest is not worth as long a wait again
            raise

    async def _end_all(self) -> None:
        self._closed = True
        self._ending.close()
        self._conversation.farewells.discard(self._say_farewell)
        for timer in self._timers:
            timer.cancel()
        await self._operations.end()

    def _in_time(self, seconds: float, act: Callable[[], Coroutine[Any, Any, None]]) -> None:
        loop = asyncio.get_running_loop()

        def begin() -> None:
            task = loop.create_task(act())
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)

        self._timers.append(loop.call_later(seconds, begin))

    async def _close_uninitialised(self) -> None:
        if not self._initialised:
            await self._close(INIT_TIMEOUT, "Connection initialisation timeout")

    async def _close_expired(self) -> None:
        await self._reject("The token has expired.")

    async def _close_ended(self) -> None:
        await self._reject("The session has ended, or its person has another role.")

    async def _say_farewell(self) -> None:
        """Close because the process stops; what was begun is finished and answered first."""
        by = asyncio.get_running_loop().time() + UNREAD_AT_STOP_S
        for limit in self._sending:
            if limit.when() is None:
                limit.reschedule(by)
        await self._operations.finish()
        await self._close(GOING_AWAY, "The server is stopping")
