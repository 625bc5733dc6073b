"""A slot stores one resource as a name, and several as a list: both occupy."""

from datetime import timedelta
from typing import Any

import pytest

from slotlock.domain.slots.resource_conflicts import ResourceUsage
from tests.support.domain.builders import NOW
from tests.support.stores.slot_store import SlotStore

DAYS = NOW, NOW + timedelta(days=3)
SEVERAL: dict[str, Any] = {"resource": "Beamer", "several_resources": ("Beamer", "Hall")}


@pytest.mark.parametrize(
    ("stored", "new"), [({"resource": "Hall"}, SEVERAL), (SEVERAL, {"resource": "Hall"})]
)
async def test_a_slot_with_one_resource_and_one_with_a_list_do_not_overlap(
    store: SlotStore, stored: dict[str, Any], new: dict[str, Any]
) -> None:
    old = await store.insert_slot(**stored)
    (document,) = await store.documents("slots")
    assert document["resource"] == ("Hall" if stored != SEVERAL else ["Beamer", "Hall"])
    wanted = await store.insert_slot(**new)
    _, found = await store.repositories.resources.find_overlapping(wanted.slot.resources, *DAYS)
    taken = ResourceUsage.from_slots(found).conflict_with(wanted.slot)
    assert taken is not None
    assert (taken.resource, taken.other.id) == ("Hall", old.id)
