"""What looks for news in the background is stopped, whatever comes in the same moment."""

import asyncio
from collections.abc import AsyncIterator
from functools import partial

import pytest

from slotlock.api.embedded import Servers
from slotlock.api.settings import Settings
from slotlock.api.wiring import Office, open_office
from slotlock.auth.streams import Streams
from slotlock.desk.personal import PersonalBoard
from slotlock.desk.ticket_board import TicketBoard
from slotlock.desk.tickets import read_tickets
from slotlock.stores.sessions import Sessions
from tests.support.processes import database_url

# More than lie between a word that comes and the one who waits for it going on.
TICKS = 6


@pytest.fixture
async def office(servers: Servers) -> AsyncIterator[Office]:
    url = database_url(servers, "stopping")
    async with open_office(Settings(mongo_url=url, redis_url=servers.redis_url)) as opened:
        yield opened


def begin(board: Streams | PersonalBoard | TicketBoard, office: Office) -> None:
    """Let it look, as the lifespan does."""
    match board:
        case Streams():
            board.start(Sessions(office.database), lambda _: None)
        case PersonalBoard():
            board.start(office.desk.announcements)
        case TicketBoard():
            read = partial(read_tickets, office.desk)
            board.start(office.desk.announcements, office.desk.queue, read)


@pytest.mark.parametrize("which", ["streams", "personal", "tickets"])
@pytest.mark.parametrize("ticks", range(TICKS))
async def test_who_is_stopped_while_a_word_comes_does_stop(
    office: Office, which: str, ticks: int
) -> None:
    board = Streams() if which == "streams" else getattr(office.desk, which)
    begin(board, office)
    for _ in range(TICKS):
        await asyncio.sleep(0)
    board._wake.set()
    for _ in range(ticks):
        await asyncio.sleep(0)
    stopping = asyncio.create_task(board.stop())
    # The mistake looked like this: who stops waits for ever, and so would a timeout around it.
    done, _ = await asyncio.wait([stopping], timeout=20)
    assert stopping in done
