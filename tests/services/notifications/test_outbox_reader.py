"""Every change becomes one entry of the outbox, whatever happens to its readers."""

from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial

import pytest
from bson import ObjectId
from pymongo import WriteConcern
from pymongo.errors import BulkWriteError, OperationFailure

from slotlock.domain.audit.audit_log import NoteAction
from slotlock.domain.notifications.mail_kinds import mails_about
from slotlock.domain.notifications.outbox import Channel, OutboxEntry
from slotlock.domain.notifications.webhooks import WebhookEvent
from slotlock.infrastructure.mongo.change_stream.change_stream import ChangeBatch, ChangeStream
from slotlock.infrastructure.mongo.outbox.outbox_repository import OutboxFilter, OutboxRepository
from slotlock.infrastructure.mongo.outbox.slot_changes_reader import (
    MAX_UNREAD,
    Checkpoint,
    Unread,
)
from slotlock.infrastructure.redis.locks.lock_leases import InProcessLockLease
from slotlock.services.container import utc_now
from slotlock.services.notifications.outbox_reader import OutboxReader
from tests.support.notifications.mail_scene import MailScene
from tests.support.notifications.webhook_scene import WebhookScene
from tests.support.polling import eventually


async def test_what_happened_between_two_readers_is_read(scene: MailScene) -> None:
    slot_id = await scene.insert_slot()
    async with scene.reading():
        await scene.book(slot_id, 0)
        await scene.until_entries("booked")
    await scene.book(slot_id, 1)
    async with scene.reading():
        await scene.until_entries("booked", "booked")


LOST_TOKENS = {
    "of another stream": {"_data": "8263" + "0" * 30},
    "of no stream": {"_data": "not a token"},
    "none": None,
}


@pytest.mark.parametrize("token", LOST_TOKENS)
async def test_a_lost_token_is_replaced_by_the_histories(scene: MailScene, token: str) -> None:
    slot_id = await scene.insert_slot()
    async with scene.reading():
        await scene.book(slot_id, 0)
        await scene.until_entries("booked")
    await scene.book(slot_id, 1)
    await scene.database["outbox_checkpoints"].update_one(
        {}, {"$set": {"token": LOST_TOKENS[token]}}
    )
    async with scene.reading():
        await scene.until_entries("booked", "booked")
        # The stream goes on after that.
        await scene.book(slot_id, 2)
        await scene.until_entries("booked", "booked", "booked")


async def test_what_is_written_seconds_after_its_decision_is_read(hooks: WebhookScene) -> None:
    site = hooks.site
    site.clock.now = utc_now() - timedelta(seconds=20)
    await hooks.create((WebhookEvent.BOOKING_CONFIRMED,))
    slot_id = await site.insert_slot()
    async with hooks.reading():
        await eventually(partial(site.has_checkpoint, Channel.WEBHOOK), "the reader has begun")
        site.clock.advance(timedelta(seconds=5))
        await site.book(slot_id, 0)
        await site.until_entries("booking.confirmed")


async def test_a_reader_without_a_stream_reads_some_minutes_before_its_checkpoint(
    hooks: WebhookScene,
) -> None:
    site = hooks.site
    await hooks.create((WebhookEvent.BOOKING_CONFIRMED,))
    site.clock.advance(timedelta(seconds=1))
    await site.book(await site.insert_slot(), 0)
    site.clock.advance(timedelta(minutes=5))
    # A write whose majority came after this had not been seen.
    await site.database["outbox_checkpoints"].update_one({}, {"$set": {"at": site.clock.now}})
    async with hooks.reading():
        await site.until_entries("booking.confirmed")


async def test_a_stream_that_cannot_go_on_is_not_continued_by_the_next_reader(
    hooks: WebhookScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(_: ChangeStream) -> ChangeBatch:
        raise OperationFailure("the history is lost", 286)

    await hooks.create((WebhookEvent.BOOKING_CONFIRMED,))
    async with hooks.reading():
        has_token = partial(hooks.site.has_checkpoint, Channel.WEBHOOK)
        await eventually(has_token, "the reader has begun")
    monkeypatch.setattr(ChangeStream, "next_changes", fail)
    reader = OutboxReader(hooks.site.services, Channel.WEBHOOK)
    with pytest.raises(OperationFailure):
        await reader.read_while_held(InProcessLockLease((), 1))
    assert not await has_token()


async def test_a_reader_that_dies_before_its_checkpoint_is_replaced_without_doubles(
    scene: MailScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    slot_id = await scene.insert_slot()
    async with scene.reading():
        await scene.book(slot_id, 0)
        await scene.until_entries("booked")
    await scene.book(slot_id, 1, 2)

    # It has inserted one of two entries.
    insert = OutboxRepository.insert

    async def insert_and_die(
        outbox: OutboxRepository, entries: Sequence[OutboxEntry], now: datetime
    ) -> int:
        await insert(outbox, entries[:1], now)
        raise MemoryError

    monkeypatch.setattr(OutboxRepository, "insert", insert_and_die)
    reader = OutboxReader(scene.services, Channel.MAIL, [mails_about])
    with pytest.raises(MemoryError):
        await reader.read_while_held(InProcessLockLease((), 1))
    monkeypatch.undo()
    async with scene.reading():
        await scene.until_entries("booked", "booked", "booked")


async def test_two_readers_at_once_add_each_entry_once(scene: MailScene) -> None:
    """As while Redis is unavailable, when each process grants itself the lease."""
    slot_id = await scene.insert_slot()
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(scene.reading())
        await stack.enter_async_context(scene.reading())
        await scene.book(slot_id, 0, 1, 2)
        await scene.until_entries("booked", "booked", "booked")


async def test_a_damaged_slot_holds_up_no_other(scene: MailScene) -> None:
    slot_id, damaged_id = await scene.insert_slot(), await scene.insert_slot()
    async with scene.reading():
        damage = {"$set": {"bookings": 5}, "$inc": {"version": 1}}
        await scene.database["slots"].update_one({"_id": ObjectId(damaged_id)}, damage)
        await scene.book(slot_id, 0)
        await scene.until_entries("booked")
    [unread] = await scene.services.slot_changes.find_unread(scene.clock.now)
    assert unread.what == f"slot_{damaged_id}"


async def test_an_event_of_the_site_that_cannot_be_read_holds_up_no_other_and_is_logged_once(
    hooks: WebhookScene, caplog: pytest.LogCaptureFixture
) -> None:
    site, database = hooks.site, hooks.site.database
    await hooks.create((WebhookEvent.USER_ERASED,))
    note = {"at": site.clock.now, "action": NoteAction.USER_ERASED.value, "users": 5}
    note_id = (await database["audit_notes"].insert_one(note)).inserted_id
    times = {"opensAt": site.clock.now, "closesAt": site.clock.now + timedelta(days=1)}
    campaign = {"name": "Sports", "terms": {"published": True, **times}}
    campaign_id = (await database["campaigns"].insert_one(campaign)).inserted_id
    async with hooks.reading():
        for count, member in enumerate(site.members[:2], 1):
            site.clock.advance(timedelta(milliseconds=1))
            await site.services.erasures.erase_account(member.user_id, None, site.clock.now)
            await site.until_entries(*["user.erased"] * count)
    bad = [f"campaign_{campaign_id}", f"audit_note_{note_id}"]
    assert [each.message for each in caplog.records] == [
        f"the outbox cannot read {what}" for what in bad
    ]
    found = await site.services.slot_changes.find_unread(site.clock.now - timedelta(seconds=1))
    assert [each.what for each in found] == bad


@pytest.mark.parametrize("token", [*LOST_TOKENS, "not used yet"])
async def test_what_happened_to_users_while_no_reader_ran_is_read_also_without_the_stream(
    hooks: WebhookScene, token: str
) -> None:
    site = hooks.site
    await hooks.create((WebhookEvent.USER_ERASED,))
    if token in LOST_TOKENS:
        async with hooks.reading():
            await eventually(partial(site.has_checkpoint, Channel.WEBHOOK), "the reader has begun")
        await site.database["outbox_checkpoints"].update_one(
            {}, {"$set": {"token": LOST_TOKENS[token]}}
        )
    await site.services.erasures.erase_account(site.members[0].user_id, None, site.clock.now)
    site.clock.advance(timedelta(hours=1))
    async with hooks.reading():
        await site.until_entries("user.erased")


async def test_the_latest_documents_that_could_not_be_read_are_recorded_once(
    scene: MailScene,
) -> None:
    changes, now = scene.services.slot_changes, scene.clock.now
    await changes.save_checkpoint(Channel.MAIL, Checkpoint(now, now))
    for number in (*range(MAX_UNREAD + 1), 5):
        await changes.record_unread(Channel.MAIL, Unread(f"slot_{number}", "KeyError()", now))
    expected = [*(number for number in range(1, MAX_UNREAD + 1) if number != 5), 5]
    found = await changes.find_unread(now)
    assert [each.what for each in found] == [f"slot_{number}" for number in expected]
    assert await changes.find_unread(now + timedelta(seconds=1)) == []


async def test_entries_that_no_majority_has_do_not_count_as_inserted(scene: MailScene) -> None:
    """Insert them with the concern of two members into a set of one, which stores them alone."""
    await scene.book(await scene.insert_slot(), 0)
    async with scene.reading():
        await scene.until_entries("booked")
    [entry] = (await scene.services.outbox.page(OutboxFilter(), 2)).items
    two_members = scene.database.with_options(write_concern=WriteConcern(2))
    for id_ in (entry.id, "another"):
        with pytest.raises(BulkWriteError):
            await OutboxRepository(two_members).insert([replace(entry, id=id_)], scene.clock.now)


async def test_what_happened_before_mail_was_on_is_no_mail(scene: MailScene) -> None:
    slot_id = await scene.insert_slot()
    await scene.book(slot_id, 0)
    scene.clock.now += scene.clock.now.resolution * 1000
    async with scene.reading():
        await scene.book(slot_id, 1)
        await scene.until_entries("booked")
