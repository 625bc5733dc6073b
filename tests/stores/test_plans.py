"""An index for every query: each command that the stores send is explained, and none scans."""

from slotlock.desk.desk import utc_now
from slotlock.domain.listing import Position
from slotlock.stores.mongo import Database
from slotlock.stores.slots import Slots
from tests.support.every_query import ADA, keep_slots, look, use_everything
from tests.support.plans import Heard, indexes_of, overheard, plan_of

__all__ = ["overheard"]


async def test_no_query_of_the_stores_scans_a_collection(
    overheard: tuple[Database, Heard],
) -> None:
    database, heard = overheard
    await use_everything(database)
    commands = list(heard.commands)
    asked = {next(iter(command.values())) for command in commands}
    assert {"slots", "endedBookings", "pages", "answers", "users", "teams"} <= asked
    assert {"sessions", "imports", "campaigns", "resources"} <= asked
    assert len(commands) > 50
    for command in commands:
        plan = await plan_of(database, command)
        assert "COLLSCAN" not in plan, (command, plan)
        # Only a search for words sorts what it found; every list comes in order from its index.
        if "SORT" in plan:
            assert "words" in str(command["filter"]), (command, plan)


async def test_what_is_asked_most_has_an_index_of_its_own(
    overheard: tuple[Database, Heard],
) -> None:
    database, heard = overheard
    slots = Slots(database)
    ids = await keep_slots(database)
    now = utc_now()
    # MongoDB decides by what it finds there; that it can choose the index is what is promised.
    await look(slots, ids[0])
    assert "choice" in await indexes_of(database, heard.commands[-1])
    await slots.due(now, 10)
    assert "due" in await indexes_of(database, heard.commands[-1])
    await slots.of_people([ADA], now, now)
    assert "person" in await indexes_of(database, heard.commands[-1])
    await slots.past.of_slot(ids[0], 10, Position(now, ids[0]))
    assert "slot" in await indexes_of(database, heard.commands[-1])


async def test_control_a_query_without_an_index_is_seen_to_scan(
    overheard: tuple[Database, Heard],
) -> None:
    database, heard = overheard
    await Slots(database).prepare()
    await database["slots"].find_one({"title": "Yoga"})
    assert "COLLSCAN" in await plan_of(database, heard.commands[-1])
