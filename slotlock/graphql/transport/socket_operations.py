"""The operations on one socket: begun, answered, dropped or finished."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import Any

from graphql import OperationType

from slotlock.auth.tokens import BadTokenError
from slotlock.domain.users.user import Caller
from slotlock.graphql.context import ClientInfo
from slotlock.graphql.core.errors import RateLimitedError, internal_error
from slotlock.graphql.execution.documents import DocumentError
from slotlock.graphql.execution.executor import execute_stream
from slotlock.graphql.transport.server import GraphQLRequest, GraphQLServer

MAX_OPERATIONS = 10

SendMessage = Callable[[dict[str, Any]], Awaitable[None]]


class SocketClosedError(Exception):
    """The socket is closed, by us or by the client."""


class SocketOperations:
    """What a client has begun on its socket, each under an id of the client's."""

    def __init__(
        self,
        server: GraphQLServer,
        client: ClientInfo,
        send: SendMessage,
        reject: Callable[[str], Awaitable[None]],
    ) -> None:
        self._server = server
        self._client = client
        self._send = send
        self._reject = reject
        self._running: dict[str, asyncio.Task[None]] = {}
        # Queries and mutations: what was begun is finished, whether or not anyone still listens.
        self._must_finish: set[asyncio.Task[Any]] = set()

    def __contains__(self, operation_id: str) -> bool:
        return operation_id in self._running

    @property
    def is_full(self) -> bool:
        """Whether as many as may be are under way, those included that nobody listens to."""
        return len({*self._running.values(), *self._must_finish}) >= MAX_OPERATIONS

    def start(self, operation_id: str, payload: dict[str, Any], authorization: str | None) -> None:
        """Begin an operation; who asks is found out anew, as a session can end before its token."""
        task = asyncio.create_task(self._run(operation_id, payload, authorization))
        self._running[operation_id] = task

    def complete(self, operation_id: str) -> None:
        """The client wants no more answers; what was begun to be changed is changed still."""
        self._cancel(self._running.pop(operation_id, None))

    async def finish(self) -> None:
        """Wait until every query and mutation is answered."""
        await asyncio.gather(*self._must_finish, return_exceptions=True)

    async def close(self) -> None:
        """Drop the subscriptions and wait for the rest."""
        tasks = {*self._running.values(), *self._must_finish}
        for task in tasks:
            self._cancel(task)
        await asyncio.gather(*tasks, return_exceptions=True)

    def _cancel(self, task: asyncio.Task[None] | None) -> None:
        if task is not None and task not in self._must_finish:
            task.cancel()

    async def _run(
        self, operation_id: str, payload: dict[str, Any], authorization: str | None
    ) -> None:
        try:
            asked = await self._server.parse_request(payload, authorization, self._client)
            identity = await self._server.authenticate_and_charge(
                asked.operation, authorization, self._client
            )
            if isinstance(identity, BadTokenError):
                await self._reject(str(identity))
                return
            await self._stream_results(operation_id, asked, identity)
        except DocumentError as error:
            await self.send_errors(operation_id, error.errors)
        except RateLimitedError as error:
            await self.send_errors(operation_id, [error.as_error])
        except SocketClosedError:
            pass
        except Exception as error:
            failed = internal_error("an operation failed outside its resolvers", error)
            await self.send_errors(operation_id, [failed])
        finally:
            self._unregister(operation_id)

    async def _stream_results(
        self, operation_id: str, request: GraphQLRequest, identity: Caller | None
    ) -> None:
        if request.operation.operation_type is not OperationType.SUBSCRIPTION:
            self._must_finish.add(_current_task())
        context = self._server.create_context(identity, self._client)
        async with aclosing(
            execute_stream(request.operation, request.variables, context)
        ) as stream:
            async for answer in stream:
                if self._running.get(operation_id) is not _current_task():
                    return  # the client completed it meanwhile, and may have used its id again
                if answer.is_request_error:
                    await self.send_errors(operation_id, answer.body["errors"])
                    return
                await self._send({"id": operation_id, "type": "next", "payload": answer.body})
        if self._running.get(operation_id) is _current_task():
            # Its id may be used again from the moment the client reads this.
            self._unregister(operation_id)
            await self._send({"id": operation_id, "type": "complete"})

    def _unregister(self, operation_id: str) -> None:
        self._must_finish.discard(_current_task())
        if self._running.get(operation_id) is _current_task():
            del self._running[operation_id]

    async def send_errors(self, operation_id: str, errors: list[dict[str, Any]]) -> None:
        """Tell that an operation was not executed."""
        self._unregister(operation_id)
        with contextlib.suppress(SocketClosedError):
            await self._send({"id": operation_id, "type": "error", "payload": errors})


def _current_task() -> asyncio.Task[Any]:
    task = asyncio.current_task()
    assert task is not None  # noqa: S101  (always called from a coroutine)
    return task
