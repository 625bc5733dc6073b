"""The operations on one socket: begun, answered, dropped or finished."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import Any

from graphql import OperationType

from slotlock.auth.tokens import BadTokenError
from slotlock.domain.people import Caller
from slotlock.graphql.context import Client
from slotlock.graphql.conversation import Conversation, GraphQLRequest
from slotlock.graphql.documents import DocumentError
from slotlock.graphql.errors import RateLimitedError, internal
from slotlock.graphql.execution import answers

MAX_OPERATIONS = 10

Send = Callable[[dict[str, Any]], Awaitable[None]]


class ClosedError(Exception):
    """The socket is closed, by us or by the client."""


class Operations:
    """What a client has begun on its socket, each under an id of the client's."""

    def __init__(
        self,
        conversation: Conversation,
        client: Client,
        send: Send,
        reject: Callable[[str], Awaitable[None]],
    ) -> None:
        self._conversation = conversation
        self._client = client
        self._send = send
        self._reject = reject
        self._running: dict[str, asyncio.Task[None]] = {}
        # Queries and mutations: what was begun is finished, whether or not anyone still listens.
        self._unbroken: set[asyncio.Task[Any]] = set()

    def __contains__(self, operation_id: str) -> bool:
        return operation_id in self._running

    @property
    def full(self) -> bool:
        """Whether as many as may be are under way, those included that nobody listens to."""
        return len({*self._running.values(), *self._unbroken}) >= MAX_OPERATIONS

    def begin(self, operation_id: str, payload: dict[str, Any], authorization: str | None) -> None:
        """Begin an operation; who asks is found out anew, as a session can end before its token."""
        task = asyncio.create_task(self._operate(operation_id, payload, authorization))
        self._running[operation_id] = task

    def complete(self, operation_id: str) -> None:
        """The client wants no more answers; what was begun to be changed is changed still."""
        self._drop(self._running.pop(operation_id, None))

    async def finish(self) -> None:
        """Wait until every query and mutation is answered."""
        await asyncio.gather(*self._unbroken, return_exceptions=True)

    async def end(self) -> None:
        """Drop the subscriptions and wait for the rest."""
        tasks = {*self._running.values(), *self._unbroken}
        for task in tasks:
            self._drop(task)
        await asyncio.gather(*tasks, return_exceptions=True)

    def _drop(self, task: asyncio.Task[None] | None) -> None:
        if task is not None and task not in self._unbroken:
            task.cancel()

    async def _operate(
        self, operation_id: str, payload: dict[str, Any], authorization: str | None
    ) -> None:
        try:
            asked = await self._conversation.read(payload, authorization, self._client)
            identity = await self._conversation.admit(asked.operation, authorization, self._client)
            if isinstance(identity, BadTokenError):
                await self._reject(str(identity))
                return
            await self._answer(operation_id, asked, identity)
        except DocumentError as error:
            await self.send_errors(operation_id, error.errors)
        except RateLimitedError as error:
            await self.send_errors(operation_id, [error.shown])
        except ClosedError:
            pass
        except Exception as error:
            failed = internal("an operation failed outside its resolvers", error)
            await self.send_errors(operation_id, [failed])
        finally:
            self._forget(operation_id)

    async def _answer(
        self, operation_id: str, asked: GraphQLRequest, identity: Caller | None
    ) -> None:
        if asked.operation.kind is not OperationType.SUBSCRIPTION:
            self._unbroken.add(_this_task())
        context = self._conversation.context(identity, self._client)
        async with aclosing(answers(asked.operation, asked.variables, context)) as stream:
            async for answer in stream:
                if self._running.get(operation_id) is not _this_task():
                    return  # the client completed it meanwhile, and may have used its id again
                if answer.refused:
                    await self.send_errors(operation_id, answer.body["errors"])
                    return
                await self._send({"id": operation_id, "type": "next", "payload": answer.body})
        if self._running.get(operation_id) is _this_task():
            # Its id may be used again from the moment the client reads this.
            self._forget(operation_id)
            await self._send({"id": operation_id, "type": "complete"})

    def _forget(self, operation_id: str) -> None:
        self._unbroken.discard(_this_task())
        if self._running.get(operation_id) is _this_task():
            del self._running[operation_id]

    async def send_errors(self, operation_id: str, errors: list[dict[str, Any]]) -> None:
        """Tell that an operation was not executed."""
        self._forget(operation_id)
        with contextlib.suppress(ClosedError):
            await self._send({"id": operation_id, "type": "error", "payload": errors})


def _this_task() -> asyncio.Task[Any]:
    task = asyncio.current_task()
    assert task is not None  # noqa: S101  (always called from a coroutine)
    return task
