"""Lists begin with what is not over, and cost as much however much is over."""

import secrets
from datetime import datetime, timedelta
from typing import Any

import pytest
from bson import ObjectId

from slotlock.domain.shared.pagination import Position
from slotlock.domain.slots.listing import SlotFilter, SlotOrder
from slotlock.infrastructure.mongo.client import Database, Document
from slotlock.infrastructure.mongo.ids import new_slot_id
from slotlock.infrastructure.mongo.indexes.time_spans import spans_of
from slotlock.infrastructure.mongo.repositories import repositories_on
from slotlock.infrastructure.mongo.slots.documents import to_document
from slotlock.infrastructure.mongo.slots.queries import list_query
from tests.support.domain.builders import NOW, build_slot
from tests.support.stores.query_plans import CommandRecorder, recorded_commands, values_of
import json

__all__ = ["recorded_commands"]
Recorded = tuple[Database, CommandRecorder]
HOUR, DAY = timedelta(hours=1), timedelta(days=1)


async def test_plan(recorded_commands: Recorded) -> None:
    database, _ = recorded_commands
    await repositories_on(database).indexes.build_missing()
    base = to_document(build_slot(3, id=new_slot_id()))
    docs = []
    for n in range(-6000, 2000):
        start = NOW + n * HOUR + timedelta(minutes=1)
        end = start + HOUR
        docs.append((start, end))
    for n in range(-300, 40):
        start = NOW + n * 5 * DAY
        docs.append((start, start + 100 * DAY))
    docs = [
        {**base, "_id": ObjectId(), "start": s, "end": e, "spans": spans_of(s, e)} for s, e in docs
    ]
    await database["slots"].insert_many(docs)
    for order in (SlotOrder.START_ASC, SlotOrder.START_DESC, SlotOrder.TITLE_ASC):
        for after in (
            None,
            Position(NOW - 30 * DAY, str(ObjectId())),
            Position(NOW + 3 * DAY, str(ObjectId())),
        ):
            if order.is_by_title:
                after = None
            query = list_query(SlotFilter(), order, after, NOW)
            key = "titleKey" if order.is_by_title else "start"
            command = {
                "find": "slots",
                "filter": query,
                "sort": {key: order.direction, "_id": order.direction},
                "limit": 21,
            }
            explained = await database.command("explain", command, verbosity="executionStats")
            st = explained["executionStats"]
            print(
                order,
                after,
                st["nReturned"],
                st["totalKeysExamined"],
                st["totalDocsExamined"],
                st["executionTimeMillis"],
                set(values_of("stage", explained["queryPlanner"]["winningPlan"])),
                list(values_of("indexName", explained["queryPlanner"]["winningPlan"])),
            )
    assert 0
