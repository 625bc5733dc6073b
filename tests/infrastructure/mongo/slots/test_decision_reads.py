"""Slots with few bookings are read whole, and the result is that of the projection."""

from collections.abc import Sequence
from datetime import timedelta
from random import Random

import pytest
from bson import ObjectId

from slotlock.domain.booking.booking import BookingAction, BookingId, BookingStatus, SlotId
from slotlock.domain.campaigns.terms import GroupLimit
from slotlock.domain.users.user import UserId
from slotlock.infrastructure.mongo.client import CODEC_OPTIONS, Database, Document
from slotlock.infrastructure.mongo.ids import new_campaign_id, new_slot_id
from slotlock.infrastructure.mongo.slots.reads.decision_reads import MAX_ROWS, project
from slotlock.infrastructure.mongo.slots.slot_documents import to_document, to_slot_state
from slotlock.infrastructure.mongo.slots.slot_query import SlotParts, SlotQuery
from slotlock.infrastructure.mongo.slots.slot_repository import SlotRepository
from tests.support.domain.builders import NOW, build_slot
from tests.support.domain.campaign_builders import build_terms
from tests.support.stores.query_plans import CommandRecorder, recorded_commands

__all__ = ["recorded_commands"]

Recorded = tuple[Database, CommandRecorder]
USERS = [ObjectId() for _ in range(12)]
GROUPS = ["class:5a", "class:5b", "choir"]
LIMITS = (GroupLimit("class:*", 2),)
HOUR = timedelta(hours=1)


def booking_row(user: ObjectId, random: Random) -> Document:
    """Return a booking that its user made, or a hold, which may have expired."""
    row: Document = {"id": ObjectId(), "user": user}
    if groups := random.sample(GROUPS, random.randrange(3)):
        row["groups"] = groups
    if random.random() < 0.5:
        return {**row, "at": NOW}
    held_until = NOW + random.choice([-HOUR, timedelta(0), HOUR / 2, HOUR])
    entry = {"at": NOW, "by": user, "action": BookingAction.HELD.value, "heldUntil": held_until}
    history = [{**entry, "status": BookingStatus.HELD.value}]
    return {**row, "heldUntil": held_until, "history": history}


def slot_with_rows(random: Random) -> Document:
    """Return a slot with any bookings and waitlist entries, of which none may exist."""
    facts: Document = {}
    if random.random() < 0.4:
        facts["group_limits"] = LIMITS
    if random.random() < 0.4:
        facts["terms"] = build_terms(
            campaign_id=new_campaign_id(), group_limits=random.choice([(), LIMITS])
        )
    document = to_document(build_slot(random.choice([1, 3, 6]), id=new_slot_id(), **facts))
    users = random.sample(USERS, len(USERS))
    count = random.choice([0, min(random.randrange(4), document["capacity"])])
    bookings = [booking_row(user, random) for user in users[:count]]
    waitlist = [
        {"id": ObjectId(), "user": user, "since": NOW}
        for user in users[count : count + random.choice([0, random.randrange(MAX_ROWS)])]
    ]
    rows = {"bookings": bookings, "waitlist": waitlist}
    # A stored deadline is only a bound, which a decision does not rely on.
    return {**document, **rows, "remaining": document["capacity"] - count, "nextDeadline": NOW}


def parts_of(documents: Sequence[Document], random: Random) -> SlotParts:
    """Return any parts, of which some exist."""
    bookings = [row["id"] for document in documents for row in document["bookings"]]
    return SlotParts(
        NOW + random.choice([timedelta(0), HOUR / 2]),
        frozenset(UserId(str(user)) for user in random.sample(USERS, random.randrange(4))),
        frozenset(BookingId(str(id_)) for id_ in random.sample(bookings, random.randrange(4))),
        random.randrange(5),
        random.random() < 0.5,
    )


@pytest.mark.parametrize("seed", range(20))
async def test_a_whole_document_and_its_projection_have_the_same_state(
    recorded_commands: Recorded, seed: int
) -> None:
    random = Random(seed)
    slots = recorded_commands[0]["slots"].with_options(CODEC_OPTIONS)
    documents = [slot_with_rows(random) for _ in range(40)]
    await slots.insert_many(documents)
    parts = parts_of(documents, random)
    whole = await slots.find({}, sort=[("_id", 1)]).to_list()
    projected = await slots.find({}, parts.to_projection(), sort=[("_id", 1)]).to_list()
    found = [to_slot_state(project(document, parts)) for document in whole]
    assert found == [to_slot_state(document) for document in projected]


async def insert_slot(database: Database, bookings: int = 0, waiting: int = 0) -> SlotId:
    """Insert a slot with plain bookings and waitlist entries."""
    slot_id = new_slot_id()
    document = to_document(build_slot(20, id=slot_id))
    users = [ObjectId() for _ in range(bookings + waiting)]
    await database["slots"].insert_one(
        {
            **document,
            "remaining": 20 - bookings,
            "bookings": [{"id": ObjectId(), "user": each, "at": NOW} for each in users[:bookings]],
            "waitlist": [
                {"id": ObjectId(), "user": each, "since": NOW} for each in users[bookings:]
            ],
        }
    )
    return slot_id


def commands_of(recorder: CommandRecorder) -> list[str]:
    """Return whether each command read whole slots or their parts, and forget the commands."""
    kinds = ["parts" if command["projection"] else "whole" for command in recorder.commands]
    recorder.commands.clear()
    return kinds


async def test_small_slots_are_read_whole_by_one_command(recorded_commands: Recorded) -> None:
    database, recorder = recorded_commands
    slots = SlotRepository(database)
    slot_ids = [await insert_slot(database, count, count) for count in (0, 1, MAX_ROWS)]
    recorder.commands.clear()
    found = await slots.find_each_for_update([SlotQuery(slot_id, NOW) for slot_id in slot_ids])
    assert set(found) == set(slot_ids)
    assert commands_of(recorder) == ["whole"]


@pytest.mark.parametrize(("bookings", "waiting"), [(MAX_ROWS + 1, 0), (0, MAX_ROWS + 1)])
async def test_a_large_slot_is_not_read_whole_and_this_is_remembered_while_it_is_large(
    recorded_commands: Recorded, bookings: int, waiting: int
) -> None:
    database, recorder = recorded_commands
    slots = SlotRepository(database)
    small_id, large_id = await insert_slot(database), await insert_slot(database, bookings, waiting)
    queries = [SlotQuery(slot_id, NOW) for slot_id in (small_id, large_id)]
    recorder.commands.clear()

    found = await slots.find_each_for_update(queries)
    assert set(found) == {small_id, large_id}
    assert commands_of(recorder) == ["whole", "parts"]
    state = await slots.find(queries[1])
    assert state is not None
    assert len(state.bookings) + len(state.waitlist) == (1 if waiting else 0)
    assert commands_of(recorder) == ["parts"]

    emptied = {"bookings": [], "waitlist": [], "remaining": 20}
    await database["slots"].update_one({"_id": ObjectId(large_id)}, {"$set": emptied})
    recorder.commands.clear()
    await slots.find(queries[1])
    await slots.find(queries[1])
    assert commands_of(recorder) == ["parts", "whole"]


async def test_a_slot_that_does_not_exist_is_not_found(recorded_commands: Recorded) -> None:
    assert await SlotRepository(recorded_commands[0]).find(SlotQuery(new_slot_id(), NOW)) is None
