"""What looks for news in the background is stopped, whatever comes in the same moment."""

import asyncio
from collections.abc import AsyncIterator
from functools import partial

import pytest

from slotlock.api.backend import Backend, open_backend
from slotlock.api.settings.settings import Settings
from slotlock.auth.session_streams import SessionStreams
from slotlock.devserver.embedded import EmbeddedServers
from slotlock.infrastructure.mongo.users.sessions import SessionRepository
from slotlock.services.admission.tickets import load_tickets
from slotlock.services.live.booking_events import BookingEventHub
from slotlock.services.live.ticket_updates import TicketHub
from tests.support.apps.processes import database_url

# More than lie between a word that comes and the one who waits for it going on.
TICKS = 6


@pytest.fixture
async def backend(servers: EmbeddedServers) -> AsyncIterator[Backend]:
    url = database_url(servers, "stopping")
    async with open_backend(Settings(mongo_url=url, redis_url=servers.redis_url)) as opened:
        yield opened


def begin(board: SessionStreams | BookingEventHub | TicketHub, backend: Backend) -> None:
    """Let it look, as the lifespan does."""
    match board:
        case SessionStreams():
            board.start(SessionRepository(backend.database), lambda _: None)
        case BookingEventHub():
            board.start(backend.services.slot_events)
        case TicketHub():
            read = partial(load_tickets, backend.services)
            board.start(backend.services.slot_events, backend.services.admission_queue, read)


@pytest.mark.parametrize("which", ["streams", "booking_events", "ticket_updates"])
@pytest.mark.parametrize("ticks", range(TICKS))
async def test_who_is_stopped_while_a_word_comes_does_stop(
    backend: Backend, which: str, ticks: int
) -> None:
    board = SessionStreams() if which == "streams" else getattr(backend.services, which)
    begin(board, backend)
    for _ in range(TICKS):
        await asyncio.sleep(0)
    board._refresh_timer.trigger()
    for _ in range(ticks):
        await asyncio.sleep(0)
    stopping = asyncio.create_task(board.stop())
    # The mistake looked like this: who stops waits for ever, and so would a timeout around it.
    done, _ = await asyncio.wait([stopping], timeout=20)
    assert stopping in done
