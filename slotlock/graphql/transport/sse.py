"""Server-sent events (graphql-sse, distinct connections mode): answers as a stream."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import ExitStack, aclosing, suppress
from typing import Any

import orjson
from graphql import OperationType

from slotlock.domain.users.user import Caller
from slotlock.graphql.context import Context, Identity
from slotlock.graphql.core.errors import RateLimitedError
from slotlock.graphql.execution.executor import execute_operation, execute_stream
from slotlock.graphql.transport.server import GraphQLRequest, GraphQLServer

# Proxies give up on silence after 60 s or so.
KEEP_ALIVE_INTERVAL_S = 12.0
COMPLETE_EVENT = b"event: complete\ndata:\n\n"
RETRY_AFTER_MS = 10_000


async def sse_stream(
    server: GraphQLServer, request: GraphQLRequest, identity: Identity, context: Context
) -> AsyncGenerator[bytes, None]:
    """The events, if there is room for one more stream of this person and from this address."""
    person = identity.user_id if isinstance(identity, Caller) else None
    with (
        server.streams_per_user.acquire(person) as room,
        server.streams_per_address.acquire(context.client.address) as room_there,
    ):
        if room and room_there:
            subscribes = request.operation.operation_type is OperationType.SUBSCRIPTION
            events = (
                _subscription_events(server, request, identity, context)
                if subscribes
                else _single_result(server, request, context)
            )
            async with aclosing(events):
                async for event in events:
                    yield event
        else:
            failed = RateLimitedError(RETRY_AFTER_MS).as_error
            yield _next_event({"errors": [failed]}) + COMPLETE_EVENT


async def _single_result(
    server: GraphQLServer, request: GraphQLRequest, context: Context
) -> AsyncGenerator[bytes, None]:
    """The one answer. What was begun is finished, whether or not anyone still listens."""
    answering = asyncio.ensure_future(
        execute_operation(request.operation, request.variables, context)
    )
    server.must_finish.add(answering)
    answering.add_done_callback(server.must_finish.discard)
    while not (await asyncio.wait((answering,), timeout=KEEP_ALIVE_INTERVAL_S))[0]:
        yield b":\n\n"
    yield _next_event(answering.result().body) + COMPLETE_EVENT


async def _subscription_events(
    server: GraphQLServer, request: GraphQLRequest, identity: Identity, context: Context
) -> AsyncGenerator[bytes, None]:
    """A subscription's events, until it, the token or the session ends or the process stops."""
    lasts = asyncio.get_running_loop().create_task(_until_stream_must_end(server, identity))
    with ExitStack() as ending:
        ending.callback(lasts.cancel)
        if isinstance(identity, Caller):
            ending.callback(server.auth.session_streams.register(identity, lasts.cancel))
        async with aclosing(
            execute_stream(request.operation, request.variables, context)
        ) as stream:
            following = aiter(stream)
            coming = asyncio.ensure_future(anext(following))
            try:
                while not lasts.done():
                    await asyncio.wait(
                        (coming, lasts),
                        timeout=KEEP_ALIVE_INTERVAL_S,
                        return_when=asyncio.FIRST_COMPLETED,
                    )
                    if coming.done():
                        yield _next_event(coming.result().body)
                        coming = asyncio.ensure_future(anext(following))
                    elif not lasts.done():
                        yield b":\n\n"
            except StopAsyncIteration:
                pass
            finally:
                coming.cancel()
                with suppress(asyncio.CancelledError, StopAsyncIteration):
                    await coming
        yield COMPLETE_EVENT


def _next_event(body: dict[str, Any]) -> bytes:
    return b"event: next\ndata: " + orjson.dumps(body) + b"\n\n"


async def _until_stream_must_end(server: GraphQLServer, identity: Identity) -> None:
    """Wait until a stream of this identity has to end."""
    with suppress(TimeoutError):
        seconds = None
        if isinstance(identity, Caller):
            seconds = (identity.expires_at - server.auth.now()).total_seconds()
        await asyncio.wait_for(server.stopping.wait(), seconds)
