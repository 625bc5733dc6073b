"""A version before this one: it stores nothing that lists find and order slots by.

It creates and changes slots without these fields, and repairs none.
"""

from datetime import datetime
from typing import Any

from slotlock.infrastructure.mongo.client import Document
from slotlock.infrastructure.mongo.slots import slot_documents
from slotlock.infrastructure.mongo.slots.list_field_backfill import ListFieldBackfill
from tests.support.apps.pause_points import replace_everywhere

SKIPPED_REPAIRS = "skipped_repairs"


def store_as_previous_version() -> None:
    """Store slots as the version before spans of time did."""

    def nothing(*_: Any) -> Document:
        return {}

    replace_everywhere(slot_documents.list_fields, nothing)
    skip_repairs()


def skip_repairs() -> None:
    """Count the repairs of list fields instead of making them."""

    async def skip(self: ListFieldBackfill, revised_since: datetime) -> None:
        skipped = self._slots.database[SKIPPED_REPAIRS]
        await skipped.update_one({"_id": "count"}, {"$inc": {"count": 1}}, upsert=True)

    ListFieldBackfill.backfill_revised = skip  # type: ignore[method-assign]


GUARDS = {"list-repairs": skip_repairs}
FAULTS = {"previous-version": store_as_previous_version}
