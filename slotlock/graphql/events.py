"""Server-sent events (graphql-sse, distinct connections mode): answers as a stream."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import ExitStack, aclosing, suppress

import orjson

from slotlock.domain.people import Caller
from slotlock.graphql.context import Context, Identity
from slotlock.graphql.conversation import Conversation, GraphQLRequest
from slotlock.graphql.execution import answers

# Proxies give up on silence after 60 s or so.
KEEP_ALIVE_S = 12.0


async def event_stream(
    conversation: Conversation, asked: GraphQLRequest, identity: Identity, context: Context
) -> AsyncIterator[bytes]:
    """The events, until the operation, the token or the session ends or the process stops."""
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
                        yield b"event: next\ndata: " + orjson.dumps(coming.result().body) + b"\n\n"
                        coming = asyncio.ensure_future(anext(following))
                    elif not lasts.done():
                        yield b":\n\n"
            except StopAsyncIteration:
                pass
            finally:
                coming.cancel()
                with suppress(asyncio.CancelledError, StopAsyncIteration):
                    await coming
        yield b"event: complete\ndata:\n\n"


async def _lasts(conversation: Conversation, identity: Identity) -> None:
    """Wait until a stream of this identity has to end."""
    with suppress(TimeoutError):
        seconds = None
        if isinstance(identity, Caller):
            seconds = (identity.expires_at - conversation.auth.now()).total_seconds()
        await asyncio.wait_for(conversation.stopping.wait(), seconds)
