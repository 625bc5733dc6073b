"""GraphQL over WebSocket: the graphql-transport-ws protocol, one object a socket.

https://github.com/enisdenjo/graphql-ws/blob/master/PROTOCOL.md
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Coroutine
from contextlib import aclosing
from typing import Any

import orjson
from graphql import OperationType
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketDisconnect

from slotlock.auth.tokens import BadTokenError
from slotlock.domain.people import Caller
from slotlock.graphql.conversation import Conversation, GraphQLRequest, read_request
from slotlock.graphql.documents import DocumentError
from slotlock.graphql.errors import Code, failure
from slotlock.graphql.execution import answers

log = logging.getLogger("slotlock.graphql")

PROTOCOL = "graphql-transport-ws"
INIT_WITHIN_S = 10.0
MAX_OPERATIONS = 10

GOING_AWAY = 1001
INTERNAL_ERROR = 1011
BAD_REQUEST = 4400
UNAUTHORIZED = 4401
FORBIDDEN = 4403
BAD_SUBPROTOCOL = 4406
INIT_TIMEOUT = 4408
DUPLICATE = 4409
TOO_MANY_INITS = 4429


class ClosedError(Exception):
    """The socket is closed, by us or by the client."""


class SocketEndpoint:
    """The ASGI application at /graphql for WebSockets."""

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one socket until it closes."""
        websocket = WebSocket(scope, receive, send)
        headers = websocket.headers
        if not self._conversation.welcomes(headers.get("origin"), headers.get("host")):
            await websocket.close()  # before it is accepted: the handshake gets a 403
            return
        await Socket(websocket, self._conversation).serve()


class Socket:
    """One client's socket and the operations on it."""

    def __init__(self, websocket: WebSocket, conversation: Conversation) -> None:
        self._websocket = websocket
        self._conversation = conversation
        self._operations: dict[str, asyncio.Task[None]] = {}
        self._authorization: str | None = None
        self._initialised = False
        self._acknowledged = False
        self._closed = False
        # Queries and mutations: what was begun is finished, whether or not anyone still listens.
        self._unbroken: set[asyncio.Task[Any]] = set()
        self._timers: list[asyncio.TimerHandle] = []

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
        except (ClosedError, WebSocketDisconnect):
            pass
        except Exception:
            log.exception("a socket failed")
            await self._close(INTERNAL_ERROR, "Something went wrong on our side")
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
            case "ping":
                await self._send({"type": "pong"})
            case "pong":
                pass
            case "subscribe":
                await self._subscribe(message.get("id"), message.get("payload"))
            case "complete" if isinstance(message.get("id"), str):
                self._drop(self._operations.pop(message["id"], None))
            case _:
                await self._close(BAD_REQUEST, "Unknown type of message, or a part is missing")

    async def _initialise(self, payload: object) -> None:
        if self._initialised:
            await self._close(TOO_MANY_INITS, "Too many initialisation requests")
            return
        self._initialised = True
        if payload is not None and not isinstance(payload, dict):
            await self._close(BAD_REQUEST, "The payload is an object or null")
            return
        given = {str(key).lower(): value for key, value in (payload or {}).items()}
        authorization = given.get("authorization")
        if authorization is not None and not isinstance(authorization, str):
            await self._close(FORBIDDEN, "The authorization is 'Bearer' and an access token")
            return
        self._authorization = authorization
        identity = await self._conversation.identity(authorization)
        if isinstance(identity, BadTokenError):
            await self._close(FORBIDDEN, str(identity))
            return
        if isinstance(identity, Caller):
            left = identity.expires_at - self._conversation.auth.now()
            self._in_time(left.total_seconds(), self._close_expired)
        await self._send({"type": "connection_ack"})
        self._acknowledged = True

    async def _subscribe(self, operation_id: object, payload: object) -> None:
        if not self._acknowledged:
            await self._close(UNAUTHORIZED, "Unauthorized")
        elif not isinstance(operation_id, str) or not operation_id:
            await self._close(BAD_REQUEST, "The id of an operation is a string")
        elif not isinstance(payload, dict) or not isinstance(payload.get("query"), str):
            await self._close(BAD_REQUEST, "The payload is an object with a query")
        elif operation_id in self._operations:
            await self._close(DUPLICATE, f"Subscriber for {operation_id[:64]} already exists")
        elif len(self._operations) >= MAX_OPERATIONS:
            text = f"At most {MAX_OPERATIONS} operations at once on a socket."
            await self._send_errors(operation_id, [failure(Code.LIMIT_EXCEEDED, text)])
        else:
            task = asyncio.create_task(self._operate(operation_id, payload))
            self._operations[operation_id] = task

    async def _operate(self, operation_id: str, payload: dict[str, Any]) -> None:
        try:
            asked = read_request(self._conversation.documents, payload)
            identity = await self._conversation.identity(self._authorization)
            if isinstance(identity, BadTokenError):
                await self._close(FORBIDDEN, str(identity))
                return
            await self._answer(operation_id, asked, identity)
        except DocumentError as error:
            await self._send_errors(operation_id, error.errors)
        except ClosedError:
            pass
        except Exception:
            log.exception("an operation on a socket failed outside its resolvers")
            text = "Something went wrong on our side."
            await self._send_errors(operation_id, [failure(Code.INTERNAL, text)])
        finally:
            self._unbroken.discard(_this_task())
            self._forget(operation_id)

    async def _answer(
        self, operation_id: str, asked: GraphQLRequest, identity: Caller | None
    ) -> None:
        if asked.operation.kind is not OperationType.SUBSCRIPTION:
            self._unbroken.add(_this_task())
        context = self._conversation.context(identity)
        async with aclosing(answers(asked.operation, asked.variables, context)) as stream:
            async for answer in stream:
                if answer.refused:
                    await self._send_errors(operation_id, answer.body["errors"])
                    return
                if self._operations.get(operation_id) is not _this_task():
                    return  # the client completed it meanwhile, and may have used its id again
                await self._send({"id": operation_id, "type": "next", "payload": answer.body})
        # Its id may be used again from the moment the client reads this.
        self._forget(operation_id)
        await self._send({"id": operation_id, "type": "complete"})

    def _forget(self, operation_id: str) -> None:
        if self._operations.get(operation_id) is _this_task():
            del self._operations[operation_id]

    def _drop(self, task: asyncio.Task[None] | None) -> None:
        if task is not None and task not in self._unbroken:
            task.cancel()

    async def _send_errors(self, operation_id: str, errors: list[dict[str, Any]]) -> None:
        self._forget(operation_id)
        with contextlib.suppress(ClosedError):
            await self._send({"id": operation_id, "type": "error", "payload": errors})

    async def _send(self, message: dict[str, Any]) -> None:
        # Waits while the client does not read: what it misses meanwhile is left out, not piled up.
        if self._closed:
            raise ClosedError
        try:
            await self._websocket.send_text(orjson.dumps(message).decode())
        except (WebSocketDisconnect, RuntimeError, OSError):
            raise ClosedError from None

    async def _close(self, code: int, reason: str) -> None:
        if self._closed:
            return
        self._closed = True
        with contextlib.suppress(WebSocketDisconnect, RuntimeError, OSError):
            await self._websocket.close(code, reason)

    async def _end_all(self) -> None:
        self._closed = True
        self._conversation.farewells.discard(self._say_farewell)
        for timer in self._timers:
            timer.cancel()
        tasks = {*self._operations.values(), *self._unbroken}
        for task in tasks:
            self._drop(task)
        await asyncio.gather(*tasks, return_exceptions=True)

    def _in_time(self, seconds: float, act: Callable[[], Coroutine[Any, Any, None]]) -> None:
        loop = asyncio.get_running_loop()
        self._timers.append(loop.call_later(seconds, lambda: loop.create_task(act())))

    async def _close_uninitialised(self) -> None:
        if not self._initialised:
            await self._close(INIT_TIMEOUT, "Connection initialisation timeout")

    async def _close_expired(self) -> None:
        await self._close(FORBIDDEN, "The token has expired.")

    async def _say_farewell(self) -> None:
        """Close because the process stops; what was begun is finished and answered first."""
        await asyncio.gather(*self._unbroken, return_exceptions=True)
        await self._close(GOING_AWAY, "The server is stopping")


def _this_task() -> asyncio.Task[Any]:
    task = asyncio.current_task()
    assert task is not None  # noqa: S101  (always called from a coroutine)
    return task
