"""Imports of courses that meet another one or a failure: all rows are written once, or none."""

from datetime import timedelta
from typing import Any

import pytest
from bson import ObjectId

from slotlock.domain.campaigns.campaign import Campaign
from slotlock.domain.campaigns.terms import CampaignId
from slotlock.domain.slot_files.plan import ImportOptions, SlotFilePlan, SlotsImported
from slotlock.infrastructure.mongo.ids import new_campaign_id
from slotlock.infrastructure.mongo.slots.writer import SlotWriter
from slotlock.services.campaigns.slot_files import export_slots, import_slots
from tests.services.test_deletion_races import run_before
from tests.support.domain.builders import NOW
from tests.support.domain.campaign_builders import build_terms
from tests.support.stores.late_store import ADA, LateStore, store

__all__ = ["store"]

COURSES = b"""number,title,date,start time,end time,places,teacher
A,Chess,2035-09-01,8:00,9:00,12,%s
B,Go,2035-09-02,8:00,9:00,12,
"""


@pytest.fixture
async def campaign_id(store: LateStore) -> CampaignId:
    """Return the id of a campaign without slots."""
    terms = build_terms(campaign_id=new_campaign_id(), closes_at=NOW + timedelta(days=9))
    await store.services.campaigns.insert(Campaign(terms.campaign_id, "Courses", terms), NOW)
    return terms.campaign_id


async def import_file(
    store: LateStore, campaign_id: CampaignId, teacher: str = ""
) -> tuple[int, int, int]:
    """Import two courses, and return how many were created, updated and unchanged."""
    body, options = (
        COURSES % (teacher or campaign_id).encode(),
        ImportOptions("Europe/Berlin", True),
    )
    done = await import_slots(
        store.services, body, campaign_id, options, ADA.user_id, dry_run=False
    )
    assert isinstance(done, SlotsImported), done
    return len(done.plan.created), len(done.plan.patches), done.plan.unchanged


async def numbers(store: LateStore, campaign_id: CampaignId) -> list[str]:
    rows = await export_slots(store.services, campaign_id)
    return [row["number"] for row in rows]


async def test_an_upload_that_another_one_overtakes_changes_nothing(
    store: LateStore, campaign_id: CampaignId, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_before(monkeypatch, SlotWriter, "commit", lambda: import_file(store, campaign_id))
    assert await import_file(store, campaign_id) == (0, 0, 2)
    assert await numbers(store, campaign_id) == ["A", "B"]


async def test_control_without_the_check_of_numbers_both_uploads_make_courses(
    store: LateStore, campaign_id: CampaignId, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SlotFilePlan, "numbers", ())
    # With another new resource, nothing else of the two conflicts.
    run_before(monkeypatch, SlotWriter, "commit", lambda: import_file(store, campaign_id, "Ms. V"))
    await import_file(store, campaign_id)
    assert await numbers(store, campaign_id) == ["A", "A", "B", "B"]


async def test_a_failure_at_the_end_of_the_write_leaves_nothing(
    store: LateStore, campaign_id: CampaignId, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: Any) -> None:
        raise RuntimeError("killed")

    with monkeypatch.context() as patch:
        patch.setattr(SlotWriter, "_check_numbers", fail)
        with pytest.raises(RuntimeError):
            await import_file(store, campaign_id)
    database = store.services.slot_writer._database
    assert await numbers(store, campaign_id) == []
    assert await database["resources"].find_one({"_id": campaign_id}) is None
    assert await database["audit_notes"].find_one({"campaign": ObjectId(campaign_id)}) is None
    assert await import_file(store, campaign_id) == (2, 0, 0)
    assert await import_file(store, campaign_id) == (0, 0, 2)
