"""Server-sent events: graphql-sse in its distinct connections mode."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import ExitStack, aclosing, suppress

from graphql import OperationType

from slotlock.domain.users.user import Caller
from slotlock.graphql.context import Context, Identity
from slotlock.graphql.core.errors import RateLimitedError
from slotlock.graphql.execution.operation_executor import GraphQLResponse, execute_operation
from slotlock.graphql.transport.graphql_server import GraphQLRequest, GraphQLServer

# Proxies close a connection that is silent for about 60 s.
KEEP_ALIVE_INTERVAL_S = 12.0
KEEP_ALIVE_COMMENT = b":\n\n"
COMPLETE_EVENT = b"event: complete\ndata:\n\n"
RETRY_AFTER_MS = 10_000


async def sse_stream(
    server: GraphQLServer, request: GraphQLRequest, identity: Identity, context: Context
) -> AsyncGenerator[bytes, None]:
    """Yield the results of an operation as events.

    A user or an address with too many open streams gets one RATE_LIMITED error instead.
    """
    user_id = identity.user_id if isinstance(identity, Caller) else None
    with (
        server.streams_per_user.acquire(user_id) as user_has_room,
        server.streams_per_address.acquire(context.client.address) as address_has_room,
    ):
        if not (user_has_room and address_has_room):
            error = RateLimitedError(RETRY_AFTER_MS).as_error
            yield _next_event(GraphQLResponse({"errors": [error]})) + COMPLETE_EVENT
            return
        if request[0].operation_type is OperationType.SUBSCRIPTION:
            events = _subscription_events(server, request, identity, context)
        else:
            events = _single_result(server, request, context)
        async with aclosing(events):
            async for event in events:
                yield event


async def _single_result(
    server: GraphQLServer, request: GraphQLRequest, context: Context
) -> AsyncGenerator[bytes, None]:
    """Yield the result of a query or mutation, which runs to its end without a reader, too."""
    response = asyncio.ensure_future(execute_operation(*request, context))
    server.shutdown.wait_for(response)
    while not (await asyncio.wait((response,), timeout=KEEP_ALIVE_INTERVAL_S))[0]:
        yield KEEP_ALIVE_COMMENT
    yield _next_event(response.result()) + COMPLETE_EVENT


async def _subscription_events(
    server: GraphQLServer, request: GraphQLRequest, identity: Identity, context: Context
) -> AsyncGenerator[bytes, None]:
    """Yield events until the subscription, the token or the session ends, or the process stops."""
    loop = asyncio.get_running_loop()
    stream_end = loop.create_task(_wait_for_stream_end(server, identity))
    with ExitStack() as cleanup:
        cleanup.callback(stream_end.cancel)
        if isinstance(identity, Caller):
            cleanup.callback(server.session_streams.register(identity, stream_end.cancel))
        async with aclosing(server.execute_stream(request, context)) as results:
            next_result = asyncio.ensure_future(anext(results))
            try:
                while not stream_end.done():
                    await asyncio.wait(
                        (next_result, stream_end),
                        timeout=KEEP_ALIVE_INTERVAL_S,
                        return_when=asyncio.FIRST_COMPLETED,
                    )
                    if next_result.done():
                        yield _next_event(next_result.result())
                        next_result = asyncio.ensure_future(anext(results))
                    elif not stream_end.done():
                        yield KEEP_ALIVE_COMMENT
            except StopAsyncIteration:
                pass
            finally:
                next_result.cancel()
                with suppress(asyncio.CancelledError, StopAsyncIteration):
                    await next_result
        yield COMPLETE_EVENT


async def _wait_for_stream_end(server: GraphQLServer, identity: Identity) -> None:
    """Wait until the token of the stream expires or the process stops."""
    seconds_left = None
    if isinstance(identity, Caller):
        seconds_left = (identity.expires_at - server.auth.now()).total_seconds()
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds_left):
            await server.shutdown.wait_until_started()


def _next_event(response: GraphQLResponse) -> bytes:
    return b"event: next\ndata: " + response.encode() + b"\n\n"
