"""An index for every query: each command that the stores send is explained, and none scans."""

from slotlock.domain.shared.pagination import Position
from slotlock.infrastructure.mongo.client import Database
from slotlock.infrastructure.mongo.slots.repository import SlotRepository
from slotlock.services.container import utc_now
from tests.support.stores.all_queries import ADA, insert_slots, load_for_update, run_all_queries
from tests.support.stores.query_plans import (
    CommandRecorder,
    plan_indexes,
    plan_stages,
    recorded_commands,
)

__all__ = ["recorded_commands"]


async def test_no_query_of_the_stores_scans_a_collection(
    recorded_commands: tuple[Database, CommandRecorder],
) -> None:
    database, heard = recorded_commands
    await run_all_queries(database)
    commands = list(heard.commands)
    asked = {next(iter(command.values())) for command in commands}
    assert {
        "slots",
        "ended_bookings",
        "user_versions",
        "idempotency_records",
        "users",
        "teams",
    } <= asked
    assert {"sessions", "imports", "campaigns", "resources"} <= asked
    assert len(commands) > 50
    for command in commands:
        plan = await plan_stages(database, command)
        assert "COLLSCAN" not in plan, (command, plan)
        # Only a search for words sorts what it found; every list comes in order from its index.
        if "SORT" in plan:
            assert "searchWords" in str(command["filter"]), (command, plan)


async def test_what_is_asked_most_has_an_index_of_its_own(
    recorded_commands: tuple[Database, CommandRecorder],
) -> None:
    database, heard = recorded_commands
    slots = SlotRepository(database)
    ids = await insert_slots(database)
    now = utc_now()
    # MongoDB decides by what it finds there; that it can choose the index is what is promised.
    await load_for_update(slots, ids[0])
    assert "choice_group" in await plan_indexes(database, heard.commands[-1])
    await slots.find_due(now, 10)
    assert "next_deadline" in await plan_indexes(database, heard.commands[-1])
    await slots.find_by_users([ADA], now, now)
    assert "booked_user" in await plan_indexes(database, heard.commands[-1])
    await slots.ended_bookings.page_of_slot(ids[0], 10, Position(now, ids[0]))
    assert "slot" in await plan_indexes(database, heard.commands[-1])


async def test_control_a_query_without_an_index_is_seen_to_scan(
    recorded_commands: tuple[Database, CommandRecorder],
) -> None:
    database, heard = recorded_commands
    await SlotRepository(database).create_indexes()
    await database["slots"].find_one({"title": "Yoga"})
    assert "COLLSCAN" in await plan_stages(database, heard.commands[-1])
