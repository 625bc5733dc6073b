"""The operations on one socket: started, answered, cancelled or finished."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from functools import partial
from typing import Any

import orjson
from graphql import OperationType

from slotlock.auth.authentication import VerifiedToken, verify_authorization
from slotlock.auth.tokens import BadTokenError
from slotlock.domain.users.user import Caller
from slotlock.graphql.context import ClientInfo, Identity
from slotlock.graphql.core.errors import RateLimitedError, internal_error
from slotlock.graphql.execution.document_cache import DocumentError, Operation
from slotlock.graphql.execution.shared_operations import SharedOperation
from slotlock.graphql.transport.graphql_server import (
    GraphQLRequest,
    GraphQLServer,
    record_failure,
)
from slotlock.graphql.transport.push.pushed_responses import PushedResponses, SocketWriter
from slotlock.infrastructure.request_deadline import within_deadline
from slotlock.infrastructure.telemetry.request_ids import operation_request_id
from slotlock.services.live.latest_states import LatestStates

MAX_OPERATIONS = 10

SendMessage = Callable[[dict[str, Any]], Awaitable[None]]


class SocketClosedError(Exception):
    """The socket was closed by the server or by the client."""


class SocketOperations:
    """The operations that a client started on its socket, by the id that the client chose."""

    def __init__(
        self,
        server: GraphQLServer,
        client: ClientInfo,
        send: SendMessage,
        reject: Callable[[str], Awaitable[None]],
        writer: SocketWriter | None,
        connection_id: str,
    ) -> None:
        self._server = server
        self._connection_id = connection_id
        self._client = client
        self._send = send
        self._reject = reject
        # None if the server can only await a send.
        self._writer = writer
        self._running: dict[str, asyncio.Task[None]] = {}
        # Queries and mutations run to their end, even after the client completed them.
        self._must_finish: list[asyncio.Task[Any]] = []

    def __contains__(self, operation_id: str) -> bool:
        return operation_id in self._running

    @property
    def is_full(self) -> bool:
        """Whether MAX_OPERATIONS are running, including those that the client completed."""
        return len({*self._running.values(), *self._must_finish}) >= MAX_OPERATIONS

    def start(self, operation_id: str, payload: dict[str, Any], authorization: str | None) -> None:
        """Start an operation; it authenticates again, as the session may have ended."""
        run = self._run if self._server.observer is None else self._run_observed
        task = asyncio.create_task(run(operation_id, payload, authorization))
        self._running[operation_id] = task

    def complete(self, operation_id: str) -> None:
        """Stop sending results; a query or mutation that has started still finishes."""
        self._cancel(self._running.pop(operation_id, None))

    async def finish(self) -> None:
        """Wait until the result of every query and mutation is sent."""
        await asyncio.gather(*self._must_finish, return_exceptions=True)

    async def close(self) -> None:
        """Cancel the subscriptions and wait for queries and mutations."""
        tasks = {*self._running.values(), *self._must_finish}
        for task in tasks:
            self._cancel(task)
        await asyncio.gather(*tasks, return_exceptions=True)

    def _cancel(self, task: asyncio.Task[None] | None) -> None:
        if task is not None and task not in self._must_finish:
            task.cancel()

    async def _run_observed(
        self, operation_id: str, payload: dict[str, Any], authorization: str | None
    ) -> None:
        observer = self._server.observer
        if observer is None:
            raise RuntimeError("only an observer makes operations observed")
        request_id = operation_request_id(self._connection_id, operation_id)
        with observer.observe("WS", "/graphql", _trace_headers(payload), request_id) as observed:
            await self._run(operation_id, payload, authorization)
            observed.status = "ended"

    async def _run(
        self, operation_id: str, payload: dict[str, Any], authorization: str | None
    ) -> None:
        request_id = operation_request_id(self._connection_id, operation_id)
        deadline = self._server.deadlines.begin(request_id)
        try:
            token = verify_authorization(self._server.auth, authorization)
            request = await self._server.parse_request(payload, token, self._client)
            deadline.operation_name = request[0].name
            identity = await self._authenticate_and_charge(request[0], token)
            deadline.identity = identity
            if isinstance(identity, BadTokenError):
                await self._reject(str(identity))
                return
            await self._send_results(operation_id, request, identity)
        except DocumentError as error:
            await self.send_errors(operation_id, error.errors)
        except RateLimitedError as error:
            await self.send_errors(operation_id, [error.as_error])
        except SocketClosedError:
            pass
        except Exception as error:
            body = internal_error("an operation failed outside its resolvers", error)
            await self.send_errors(operation_id, [body])
        finally:
            self._unregister(operation_id)

    async def _authenticate_and_charge(
        self, operation: Operation, token: VerifiedToken
    ) -> Identity:
        try:
            with within_deadline():
                return await self._server.authenticate_and_charge(operation, token, self._client)
        except Exception as error:
            record_failure(operation, error)
            raise

    async def _send_results(
        self, operation_id: str, request: GraphQLRequest, identity: Caller | None
    ) -> None:
        if request[0].operation_type is not OperationType.SUBSCRIPTION:
            self._must_finish.append(_current_task())
        context = self._server.create_context(identity, self._client)
        push = partial(_push, operation_id, self._writer) if self._writer else None
        async with aclosing(self._server.execute_stream(request, context, push)) as results:
            async for result in results:
                if not self._is_current(operation_id):
                    return  # the client completed it, and may have used its id again
                if result.is_request_error:
                    await self.send_errors(operation_id, result.body["errors"])
                    return
                payload = orjson.Fragment(result.encode())
                await self._send({"id": operation_id, "type": "next", "payload": payload})
        if self._is_current(operation_id):
            # The client may use the id again as soon as it has read this message.
            self._unregister(operation_id)
            await self._send({"id": operation_id, "type": "complete"})

    def _is_current(self, operation_id: str) -> bool:
        """Return whether the id still belongs to the operation of the current task."""
        return self._running.get(operation_id) is _current_task()

    def _unregister(self, operation_id: str) -> None:
        if _current_task() in self._must_finish:
            self._must_finish.remove(_current_task())
        if self._is_current(operation_id):
            del self._running[operation_id]

    async def send_errors(self, operation_id: str, errors: list[dict[str, Any]]) -> None:
        """Send the errors of an operation that was not executed."""
        self._unregister(operation_id)
        with contextlib.suppress(SocketClosedError):
            await self._send({"id": operation_id, "type": "error", "payload": errors})


def _trace_headers(payload: dict[str, Any]) -> dict[str, str]:
    """Return the trace that an operation continues: a socket has no headers for each."""
    extensions = payload.get("extensions") or {}
    names = ("traceparent", "tracestate")
    return {name: extensions[name] for name in names if isinstance(extensions.get(name), str)}


async def _push(
    operation_id: str,
    writer: SocketWriter,
    subscription: LatestStates[Any, Any],
    shared: SharedOperation,
) -> None:
    await PushedResponses(operation_id, subscription, shared, writer).run()


def _current_task() -> asyncio.Task[Any]:
    task = asyncio.current_task()
    assert task is not None  # noqa: S101  (always called from a coroutine)
    return task
