"""What fails on our side is told by an id that the log knows, and by nothing else."""

import logging
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack

import pytest
from pydantic import SecretStr

from slotlock.api.app import open_rooms
from slotlock.api.embedded import Servers
from slotlock.api.settings import Settings
from slotlock.desk.availability import Watch
from slotlock.domain.availability import Availability
from slotlock.graphql.context import UNKNOWN
from slotlock.graphql.conversation import Conversation
from slotlock.graphql.execution import answers
from slotlock.stores.ids import new_slot_id
from slotlock.stores.writes import Changes
from tests.domain.test_booking import slot
from tests.support.client import WATCH
from tests.support.processes import SECRET, database_url

DETAIL = "a detail of ours"


def broken(error: Exception) -> object:
    """A source of states that fails after the first."""

    async def states(self: Watch) -> AsyncGenerator[Availability, None]:
        yield await anext(told(self))
        raise error

    told = Watch.states
    return states


@pytest.mark.parametrize("error", [RuntimeError(DETAIL), ValueError(DETAIL), KeyError(DETAIL)])
async def test_a_source_of_events_that_fails_is_masked(
    servers: Servers,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    error: Exception,
) -> None:
    monkeypatch.setattr(Watch, "states", broken(error))
    settings = Settings(
        mongo_url=database_url(servers, "masked"),
        redis_url=servers.redis_url,
        secret_key=(SecretStr(SECRET),),
    )
    async with AsyncExitStack() as closing:
        rooms = await closing.enter_async_context(open_rooms(settings, development=False))
        conversation: Conversation = rooms["http"]._conversation
        slot_id = new_slot_id()
        assert await conversation.desk.writes.commit(Changes((), new=(slot(5, id=slot_id),)))
        sent = {"query": WATCH, "variables": {"slots": [f"slot_{slot_id}"]}}
        asked = await conversation.read(sent, None, UNKNOWN)
        stream = answers(asked.operation, asked.variables, conversation.context(None))
        with caplog.at_level(logging.ERROR):
            first, last = [answer async for answer in stream]
    assert first.body["data"]
    (told,) = last.body["errors"]
    assert told["extensions"]["code"] == "INTERNAL"
    assert told["path"] == ["slotAvailability"]
    assert DETAIL not in str(told)
    assert told["extensions"]["errorId"] in caplog.text
    assert DETAIL in caplog.text
