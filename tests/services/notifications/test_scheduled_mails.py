"""Reminders and mails about openings: to whom, once, in time, and only while they are right."""

import asyncio
from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from bson import ObjectId

from slotlock.domain.booking.booking import Booking, SlotId
from slotlock.domain.booking.decision import BookingChangeRequest
from slotlock.domain.booking.rules import booking_changes
from slotlock.domain.booking.slot import Slot
from slotlock.domain.campaigns.campaign import CampaignDraft, CampaignPatch, CampaignSaved
from slotlock.domain.campaigns.terms import CampaignTerms
from slotlock.domain.notifications import optional_mails
from slotlock.domain.notifications.outbox import OutboxEntry, OutboxState
from slotlock.domain.notifications.quiet_hours import HEAD_START
from slotlock.domain.shared.unchanged import UNCHANGED
from slotlock.domain.users.user import MailTopic
from slotlock.infrastructure.mongo.ids import new_campaign_id
from slotlock.infrastructure.mongo.outbox.scheduled_mail_queries import ScheduledMailQueries
from slotlock.infrastructure.redis.keys import MAIL_SCHEDULE_LOCK
from slotlock.infrastructure.redis.locks.lock_leases import LockLease
from slotlock.infrastructure.redis.locks.locks import Locks
from slotlock.services.booking import waitlist
from slotlock.services.booking.booking_changes import change_booking
from slotlock.services.campaigns import campaigns
from slotlock.services.notifications import scheduled_mails
from slotlock.services.notifications.scheduled_mails import MailSchedule, mail_schedule
from slotlock.services.slots import editing
from tests.support.domain.builders import build_patch
from tests.support.domain.campaign_builders import build_terms
from tests.support.notifications.mail_scene import NIGHT, MailScene
from tests.support.polling import eventually

MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)


@pytest.fixture
async def reminded(scene: MailScene) -> SlotId:
    """Let the worker run, and return a slot of the day after with a reminder two hours before."""
    await scene.schedule()
    return await scene.insert_slot(capacity=2, reminder_minutes=120)


async def states(scene: MailScene) -> list[str]:
    """Return the kinds and states of all entries."""
    return sorted(f"{each.kind} {each.state.value}" for each in await scene.entries())


async def test_all_who_have_a_place_are_reminded_in_time(
    scene: MailScene, reminded: SlotId
) -> None:
    [booking_id] = await scene.book(reminded, 0)
    scene.clock.advance(22 * HOUR - MINUTE)
    await scene.book(reminded, 1, hold=True)
    await waitlist.join(scene.services, reminded, scene.members[2].user_id, 0)
    await scene.schedule()
    assert await scene.entries() == []
    for _ in range(3):
        await scene.schedule(MINUTE)
    [entry] = await scene.entries()
    start = scene.clock.now + 2 * HOUR - 2 * MINUTE
    assert entry.id == f"reminder:{booking_id}:{start.isoformat()}"
    await scene.send()
    [message] = scene.trap.messages
    assert (message["To"], message["Subject"]) == ("Member 0 <0@school.test>", "Reminder: Yoga")
    user_id = scene.members[0].user_id
    assert message["List-Unsubscribe"] == (f"<https://school.test/unsubscribe/{user_id}.reminders>")
    assert message["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    assert list(message.iter_attachments()) == []  # calendars have the event already


async def test_who_books_or_is_promoted_later_than_the_reminder_gets_none(
    scene: MailScene, reminded: SlotId
) -> None:
    [first, _] = await scene.book(reminded, 0, 1)
    await waitlist.join(scene.services, reminded, scene.members[2].user_id, 0)
    await scene.schedule(22 * HOUR + MINUTE)
    request = BookingChangeRequest(reminded, first, scene.members[0])
    await change_booking(scene.services, booking_changes.cancel, request)
    await scene.schedule(MINUTE)
    recipients = {each.user_id for each in await scene.entries()}
    assert recipients == {member.user_id for member in scene.members[:2]}


@pytest.mark.parametrize("is_guarded", [True, False])
async def test_two_workers_remind_once(
    scene: MailScene, reminded: SlotId, monkeypatch: pytest.MonkeyPatch, is_guarded: bool
) -> None:
    """Without ids that follow from the booking and its time, both remind: the control."""
    if not is_guarded:

        def reminder(slot: Slot, booking: Booking, at: datetime, now: datetime) -> OutboxEntry:
            return replace(optional_mails.reminder(slot, booking, at, now), id=str(ObjectId()))

        monkeypatch.setattr(scheduled_mails, "reminder", reminder)
    both_begun, load_checkpoint = asyncio.Barrier(2), ScheduledMailQueries.load_checkpoint

    async def load_before_the_other_saves(queries: ScheduledMailQueries) -> datetime | None:
        checkpoint = await load_checkpoint(queries)
        await both_begun.wait()
        return checkpoint

    monkeypatch.setattr(ScheduledMailQueries, "load_checkpoint", load_before_the_other_saves)
    await scene.book(reminded, 0)
    scene.clock.advance(22 * HOUR)
    workers = [MailSchedule(scene.services, None) for _ in range(2)]
    await asyncio.gather(*(worker.insert_due() for worker in workers))
    assert len(await scene.entries()) == (1 if is_guarded else 2)


async def test_a_worker_that_dies_before_its_checkpoint_is_repeated_without_doubles(
    scene: MailScene, reminded: SlotId, monkeypatch: pytest.MonkeyPatch
) -> None:
    await scene.book(reminded, 0)

    async def die(*_: object) -> None:
        raise MemoryError

    with monkeypatch.context() as patched:
        patched.setattr(ScheduledMailQueries, "save_checkpoint", die)
        with pytest.raises(MemoryError):
            await scene.schedule(22 * HOUR)
    await scene.schedule(HOUR)
    assert len(await scene.entries()) == 1


async def test_a_reminder_whose_insertion_failed_is_inserted_by_the_next_run(
    scene: MailScene, reminded: SlotId, monkeypatch: pytest.MonkeyPatch
) -> None:
    await scene.book(reminded, 0)

    async def fail(*_: object) -> None:
        raise MemoryError

    with monkeypatch.context() as patched:
        patched.setattr(type(scene.services.outbox), "insert", fail)
        with pytest.raises(MemoryError):
            await scene.schedule(22 * HOUR + 10 * MINUTE)
    # Later than WRITE_GRACE_PERIOD, which reads again what was just due.
    await scene.schedule(HOUR)
    assert await states(scene) == ["reminder queued"]


async def test_a_worker_begins_soon_after_the_end_of_a_lease_that_another_one_left(
    scene: MailScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scheduled_mails, "INTERVAL_S", 3600.0)
    monkeypatch.setattr(scheduled_mails, "BACKOFF_S", 0.01)
    locks, acquire, is_refused = scene.services.locks, Locks.acquire, asyncio.Event()
    left = await locks.acquire(MAIL_SCHEDULE_LOCK)
    assert left is not None

    async def recording_acquire(self: Locks, name: str) -> LockLease | None:
        lease = await acquire(self, name)
        if lease is None:
            is_refused.set()
        return lease

    async def has_checkpoint() -> bool:
        return await scene.services.scheduled_mails.load_checkpoint() is not None

    monkeypatch.setattr(Locks, "acquire", recording_acquire)
    async with mail_schedule(scene.services, locks, None):
        await is_refused.wait()
        assert not await has_checkpoint()
        await locks.release(left)
        await eventually(has_checkpoint, "the worker has inserted what is due")


@pytest.mark.parametrize(("late_by", "count"), [(2 * HOUR - MINUTE, 1), (2 * HOUR, 0)])
async def test_a_late_worker_reminds_until_the_start(
    scene: MailScene, reminded: SlotId, late_by: timedelta, count: int
) -> None:
    await scene.book(reminded, 0)
    await scene.schedule(22 * HOUR + late_by)
    assert len(await scene.entries()) == count
    # A mail server that is down until the start is too late.
    await scene.send(2 * HOUR - late_by)
    assert await states(scene) == ["reminder suppressed"] * count
    assert scene.trap.count == 0


@pytest.mark.parametrize("change", ["booking", "slot", "new time", "hidden"])
async def test_what_is_cancelled_or_moved_before_the_mail_is_not_reminded_of(
    scene: MailScene, reminded: SlotId, change: str
) -> None:
    [booking_id] = await scene.book(reminded, 0)
    await scene.schedule(22 * HOUR)
    request = BookingChangeRequest(reminded, booking_id, scene.organizer)
    by = scene.organizer.user_id
    match change:
        case "booking":
            await change_booking(scene.services, booking_changes.cancel, request)
        case "slot":
            await editing.cancel(scene.services, reminded, by)
        case "new time":
            start = scene.clock.now + 5 * HOUR
            patch = build_patch(start=start, end=start + HOUR)
            await editing.edit(scene.services, reminded, patch, by)
        case "hidden":
            await scene.database["slots"].update_one(
                {"_id": ObjectId(reminded)}, {"$set": {"status": "draft"}}
            )
    await scene.send()
    assert await states(scene) == ["reminder suppressed"]
    # The new time has a reminder of its own.
    await scene.schedule(3 * HOUR)
    await scene.send(timedelta())
    assert scene.trap.subjects == (["Reminder: Yoga"] if change == "new time" else [])


async def test_a_slot_has_the_reminder_of_its_campaign_or_its_own(scene: MailScene) -> None:
    await scene.schedule()
    closes_at = scene.clock.now + HOUR
    terms = build_terms(opens_at=scene.clock.now - HOUR, closes_at=closes_at, reminder_minutes=60)
    terms = replace(terms, campaign_id=new_campaign_id())
    for title, minutes in (("of campaign", None), ("none", 0), ("own", 30)):
        slot_id = await scene.insert_slot(title=title, reminder_minutes=minutes, terms=terms)
        await scene.book(slot_id, 0)
    await scene.schedule(23 * HOUR)
    await scene.send(timedelta())
    assert scene.trap.subjects == ["Reminder: of campaign"]
    await scene.schedule(HOUR / 2)
    await scene.send(timedelta())
    assert scene.trap.subjects == ["Reminder: of campaign", "Reminder: own"]


@pytest.mark.parametrize(
    ("starts_in", "reminded_in", "sent_in"),
    [
        # It is 9:00 in Berlin, and quiet from 22:00 to 7:00.
        (timedelta(hours=24), timedelta(hours=21), timedelta(hours=22)),
        # The quiet hours end at the start, or after it.
        (timedelta(hours=22), timedelta(hours=20), timedelta(hours=13) - HEAD_START),
        (timedelta(hours=20), timedelta(hours=19), timedelta(hours=13) - HEAD_START),
        (timedelta(hours=24), timedelta(hours=23), timedelta(hours=23)),
    ],
)
async def test_quiet_hours_delay_a_reminder_or_it_comes_before_them(
    scene: MailScene, starts_in: timedelta, reminded_in: timedelta, sent_in: timedelta
) -> None:
    await scene.schedule()
    start = scene.clock.now + starts_in
    minutes = (starts_in - reminded_in) // MINUTE
    slot_id = await scene.insert_slot(start=start, end=start + HOUR, reminder_minutes=minutes)
    await scene.book(slot_id, 0)
    await scene.schedule(sent_in - MINUTE, NIGHT)
    assert await scene.entries() == []
    await scene.schedule(MINUTE, NIGHT)
    await scene.send(timedelta())
    assert scene.trap.subjects == ["Reminder: Yoga"]


async def test_what_fails_until_the_quiet_hours_waits_for_their_end(
    scene: MailScene,
) -> None:
    await scene.schedule()
    slot_id = await scene.insert_slot(reminder_minutes=11 * 60 + 5)
    await scene.book(slot_id, 0)
    await scene.schedule(13 * HOUR - 5 * MINUTE, NIGHT)
    scene.trap.respond_to_data = lambda: "451 later"
    await scene.send(timedelta())
    scene.trap.respond_to_data = lambda: None
    await scene.send(6 * MINUTE)
    [entry] = await scene.entries()
    found = (entry.state, entry.note, entry.attempts)
    assert found == (OutboxState.QUEUED, "quiet hours", 1)  # that of before
    assert entry.due_at == scene.clock.now + 9 * HOUR - MINUTE
    await scene.send(9 * HOUR - MINUTE)
    assert scene.trap.subjects == ["Reminder: Yoga"]


@pytest.mark.parametrize("topic", list(MailTopic))
async def test_who_refuses_reminders_gets_none(
    scene: MailScene, reminded: SlotId, topic: MailTopic
) -> None:
    await scene.book(reminded, 0)
    await scene.services.users.set_preferences(scene.members[0].user_id, UNCHANGED, {topic: False})
    await scene.schedule(22 * HOUR)
    await scene.send()
    is_refused = topic is MailTopic.REMINDERS
    assert await states(scene) == ["reminder suppressed" if is_refused else "reminder sent"]


async def create_campaign(scene: MailScene, **fields: object) -> CampaignTerms:
    """Create a published campaign that opens in two days, with a mail a day before."""
    opens_at = scene.clock.now + 2 * DAY
    draft = CampaignDraft(
        "Week",
        opens_at,
        opens_at + DAY,
        **{"published": True, "opening_mail_hours": 24, **fields},  # type: ignore[arg-type]
    )
    created = await campaigns.create(scene.services, draft, scene.organizer.user_id)
    assert isinstance(created, CampaignSaved)
    return created.campaign.terms


async def test_an_opening_is_a_mail_to_all_who_may_book_and_want_it(scene: MailScene) -> None:
    await scene.schedule()
    users = scene.services.users
    for number in (0, 1):
        user_id = scene.members[number].user_id
        await users.set_groups(user_id, ["5a"], None, scene.clock.now)
    refused = {MailTopic.ANNOUNCEMENTS: False}
    await users.set_preferences(scene.members[1].user_id, UNCHANGED, refused)
    await create_campaign(scene, eligible_groups=(("5a",),))
    await create_campaign(scene, published=False)
    await create_campaign(scene, opening_mail_hours=None)
    await scene.schedule(DAY - MINUTE)
    assert await scene.entries() == []
    for _ in range(2):
        await scene.schedule(MINUTE)
    await scene.send(timedelta())
    [message] = scene.trap.messages
    assert (message["To"], message["Subject"]) == (
        "Member 0 <0@school.test>",
        "Booking opens soon: Week",
    )
    body = message.get_body(("plain",))
    assert body is not None
    assert "You can book from Wed, January 4, 2040, 09:00 (Berlin time) on." in body.get_content()


async def test_an_opening_that_is_postponed_has_the_mail_of_its_new_time(
    scene: MailScene,
) -> None:
    await scene.schedule()
    terms = await create_campaign(scene)
    await scene.schedule(DAY)
    patch = CampaignPatch(opens_at=terms.opens_at + HOUR)
    await campaigns.edit(scene.services, terms.campaign_id, patch, scene.organizer.user_id)
    await scene.send(timedelta())
    assert await states(scene) == ["campaign_opens suppressed"] * 3
    await scene.schedule(HOUR)
    await scene.send(timedelta())
    assert scene.trap.subjects == ["Booking opens soon: Week"] * 3
