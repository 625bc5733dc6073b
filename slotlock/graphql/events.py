"""Server-sent events (graphql-sse, distinct connections mode): answers as a stream."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import ExitStack, aclosing, suppress
from typing import Any

import orjson
from graphql import OperationType

from slotlock.domain.people import Caller
from slotlock.graphql.context import Context, Identity
from slotlock.graphql.conversation import Conversation, GraphQLRequest
from slotlock.graphql.errors import RateLimitedError
from slotlock.graphql.execution import answers, run

# Proxies give up on silence after 60 s or so.
KEEP_ALIVE_S = 12.0
COMPLETE = b"event: complete\ndata:\n\n"
RETRY_AFTER_MS = 10_000


async def event_stream(
    conversation: Conversation, asked: GraphQLRequest, identity: Identity, context: Context
) -> AsyncGenerator[bytes, None]:
    """The events, if there is room for one more stream of this person and from this address."""
    person = identity.user_id if isinstance(identity, Caller) else None
    with (
        conversation.streams_per_person.room_for(person) as room,
        conversation.streams_per_address.room_for(context.client.address) as room_there,
    ):
        if room and room_there:
            subscribes = asked.operation.kind is OperationType.SUBSCRIPTION
            events = (
                _events(conversation, asked, identity, context)
                if subscribes
                else _answered(conversation, asked, context)
            )
            async with aclosing(events):
                async for event in events:
                    yield event
        else:
            failed = RateLimitedError(RETRY_AFTER_MS).shown
            yield _next({"errors": [failed]}) + COMPLETE


async def _answered(
    conversation: Conversation, asked: GraphQLRequest, context: Context
) -> AsyncGenerator[bytes, None]:
    """The one answer. What was begun is finished, whether or not anyone still listens."""
    answering = asyncio.ensure_future(run(asked.operation, asked.variables, context))
    conversation.unbroken.add(answering)
    answering.add_done_callback(conversation.unbroken.discard)
    while not (await asyncio.wait((answering,), timeout=KEEP_ALIVE_S))[0]:
        yield b":\n\n"
    yield _next(answering.result().body) + COMPLETE


async def _events(
    conversation: Conversation, asked: GraphQLRequest, identity: Identity, context: Context
) -> AsyncGenerator[bytes, None]:
    """A subscription's events, until it, the token or the session ends or the process stops."""
    lasts = asyncio.get_running_loop().create_task(_lasts(conversation, identity))
    with ExitStack() as ending:
        ending.callback(lasts.cancel)
        if isinstance(identity, Caller):
            ending.callback(conversation.auth.streams.begin(identity, lasts.cancel))
        async with aclosing(answers(asked.operation, asked.variables, context)) as stream:
            following = aiter(stream)
            coming = asyncio.ensure_future(anext(following))
            try:
                while not lasts.done():
                    await asyncio.wait(
                        (coming, lasts),
                        timeout=KEEP_ALIVE_S,
                        return_when=asyncio.FIRST_COMPLETED,
                    )
                    if coming.done():
                        yield _next(coming.result().body)
                        coming = asyncio.ensure_future(anext(following))
                    elif not lasts.done():
                        yield b":\n\n"
            except StopAsyncIteration:
                pass
            finally:
                coming.cancel()
                with suppress(asyncio.CancelledError, StopAsyncIteration):
                    await coming
        yield COMPLETE


def _next(body: dict[str, Any]) -> bytes:
    return b"event: next\ndata: " + orjson.dumps(body) + b"\n\n"


async def _lasts(conversation: Conversation, identity: Identity) -> None:
    """Wait until a stream of this identity has to end."""
    with suppress(TimeoutError):
        seconds = None
        if isinstance(identity, Caller):
            seconds = (identity.expires_at - conversation.auth.now()).total_seconds()
        await asyncio.wait_for(conversation.stopping.wait(), seconds)
