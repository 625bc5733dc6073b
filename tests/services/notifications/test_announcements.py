"""An announcement goes once to all who have a place and want it, and only when it is new."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest
from bson import ObjectId

from slotlock.domain.audit.audit_log import AuditFilter
from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.booking_refusals import KeyReused, SlotNotFound
from slotlock.domain.campaigns.campaign import CampaignDraft, CampaignNotFound, CampaignSaved
from slotlock.domain.campaigns.terms import CampaignId
from slotlock.domain.notifications.announcements import (
    MAX_PER_ORGANIZER,
    MAX_PER_SITE,
    RATE_PERIOD,
    AnnouncementOutcome,
    AnnouncementSent,
    Audience,
    TooManyAnnouncements,
)
from slotlock.domain.notifications.outbox import OutboxState
from slotlock.domain.shared.unchanged import UNCHANGED
from slotlock.domain.shared.validation import InvalidInput
from slotlock.domain.users.user import Caller, MailTopic, Role, UserId
from slotlock.infrastructure.mongo.ids import new_slot_id
from slotlock.infrastructure.mongo.outbox.announcement_repository import AnnouncementRepository
from slotlock.infrastructure.mongo.outbox.outbox_repository import OutboxRepository
from slotlock.services.booking import waitlist
from slotlock.services.campaigns import campaigns
from slotlock.services.notifications import announcements
from slotlock.services.notifications.announcements import find_recipients, send_announcement
from tests.support.notifications.mail_scene import MailScene

TEXT = "Bring a towel.\r\n\r\n<b>Olga</b> {{ name }}"


async def announce(
    scene: MailScene,
    audience: Audience,
    key: str = "key",
    subject: str = "Pool",
    text: str = TEXT,
    by: Caller | None = None,
) -> AnnouncementOutcome:
    """Send an announcement."""
    sender = by or scene.organizer
    return await send_announcement(scene.services, sender, audience, subject, text, key)


async def busy_slot(scene: MailScene) -> SlotId:
    """Insert a slot with a booking, a hold and somebody who waits."""
    slot_id = await scene.insert_slot(capacity=2)
    await scene.book(slot_id, 0)
    await scene.book(slot_id, 1, hold=True)
    await waitlist.join(scene.services, slot_id, scene.members[2].user_id, 0)
    return slot_id


@pytest.mark.parametrize(("with_waiting", "count"), [(False, 1), (True, 3)])
async def test_all_who_have_a_place_get_it_and_those_who_wait_on_request(
    scene: MailScene, with_waiting: bool, count: int
) -> None:
    audience = Audience(await busy_slot(scene), None, with_waiting)
    assert len(await find_recipients(scene.services, audience)) == count
    assert await announce(scene, audience) == AnnouncementSent(count)
    await scene.send(timedelta())
    recipients = sorted(str(message["To"]) for message in scene.trap.messages)
    assert recipients == [f"Member {n} <{n}@school.test>" for n in range(count)]
    message = scene.trap.messages[0]
    assert message["Subject"] == "Pool"
    assert "announcements" in message["List-Unsubscribe"]
    plain, page = (message.get_body([kind]) for kind in ("plain", "html"))
    assert plain is not None
    assert page is not None
    expected = "Olga writes about Yoga:\n\nBring a towel.\n\n<b>Olga</b> {{ name }}\n"
    assert expected in plain.get_content().replace("\r\n", "\n")
    assert "&lt;b&gt;Olga&lt;/b&gt; {{ name }}" in page.get_content()


async def test_a_campaign_reaches_each_user_once_and_not_who_refuses_or_has_no_address(
    scene: MailScene,
) -> None:
    opens_at = scene.clock.now
    draft = CampaignDraft("Week", opens_at, opens_at + timedelta(days=1), published=True)
    created = await campaigns.create(scene.services, draft, scene.organizer.user_id)
    assert isinstance(created, CampaignSaved)
    for _ in range(2):
        slot_id = await scene.insert_slot(terms=created.campaign.terms)
        await scene.book(slot_id, 0, 1, 2)
    await scene.book(await scene.insert_slot(), 3)
    refused = {MailTopic.ANNOUNCEMENTS: False}
    await scene.services.users.set_preferences(scene.members[1].user_id, UNCHANGED, refused)
    await scene.database["users"].update_one({"email": "2@school.test"}, {"$set": {"email": "cy"}})
    assert await announce(scene, Audience(None, created.campaign.id)) == AnnouncementSent(1)
    await scene.send(timedelta())
    assert [message["To"] for message in scene.trap.messages] == ["Member 0 <0@school.test>"]


async def test_those_without_a_place_in_a_campaign_get_it_instead_on_request(
    scene: MailScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    opens_at = scene.clock.now
    draft = CampaignDraft("Week", opens_at, opens_at + timedelta(days=1), published=True)
    created = await campaigns.create(scene.services, draft, scene.organizer.user_id)
    assert isinstance(created, CampaignSaved)
    slot_id = await scene.insert_slot(capacity=1, terms=created.campaign.terms)
    await scene.book(slot_id, 0)
    for number in (1, 2):
        await waitlist.join(scene.services, slot_id, scene.members[number].user_id, 0)
    monkeypatch.setattr(announcements, "BATCH_SIZE", 1)  # so that there are several pages
    audience = Audience(None, created.campaign.id, unplaced=True)
    assert await announce(scene, audience) == AnnouncementSent(2)
    await scene.send(timedelta())
    recipients = sorted(str(message["To"]) for message in scene.trap.messages)
    assert recipients == [f"Member {n} <{n}@school.test>" for n in (1, 2)]
    # What is stored names the same users, for a worker that finishes it.
    stored = await scene.database["announcements"].find_one({})
    assert stored is not None
    assert stored["unplaced"] is True


async def test_a_repeated_request_sends_nothing_also_to_who_books_later(scene: MailScene) -> None:
    slot_id = await scene.insert_slot()
    await scene.book(slot_id, 0)
    audience = Audience(slot_id, None)
    sent = await asyncio.gather(*(announce(scene, audience) for _ in range(3)))
    assert sent == [AnnouncementSent(1)] * 3
    await scene.book(slot_id, 1)
    assert await announce(scene, audience) == AnnouncementSent(1)
    assert await announce(scene, audience, text="Other") == KeyReused("key")
    await scene.send(timedelta())
    assert scene.trap.subjects == ["Pool"]
    log = await scene.services.audit_log.page(
        AuditFilter(slot_id=slot_id), 10, None, scene.clock.now
    )
    [entry] = [each for each in log.items if each.action.value == "announcement_sent"]
    assert [(each.field, each.after) for each in entry.edits] == [
        ("subject", "Pool"),
        ("recipientCount", "1"),
    ]


async def test_an_interrupted_request_is_finished_by_repeating_it(
    scene: MailScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    slot_id = await scene.insert_slot()
    await scene.book(slot_id, 0, 1)
    insert = OutboxRepository.insert

    async def insert_and_die(outbox: OutboxRepository, entries: list[object], now: object) -> int:
        await insert(outbox, entries[:1], now)  # type: ignore[arg-type]
        raise MemoryError

    with monkeypatch.context() as patched:
        patched.setattr(OutboxRepository, "insert", insert_and_die)
        with pytest.raises(MemoryError):
            await announce(scene, Audience(slot_id, None))
    assert await announce(scene, Audience(slot_id, None)) == AnnouncementSent(2)
    await scene.send(timedelta())
    assert len({str(message["To"]) for message in scene.trap.messages}) == scene.trap.count == 2


async def test_an_hour_has_a_limited_number_of_announcements(
    scene: MailScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    audience = Audience(await scene.insert_slot(), None)
    for number in range(MAX_PER_ORGANIZER):
        assert await announce(scene, audience, str(number)) == AnnouncementSent(0)
        scene.clock.advance(timedelta(seconds=1))
    wait = (RATE_PERIOD - timedelta(seconds=MAX_PER_ORGANIZER)) // timedelta(milliseconds=1)
    assert await announce(scene, audience, "more") == TooManyAnnouncements(wait)
    assert await announce(scene, audience, "0") == AnnouncementSent(0)  # a repeated one is free
    other = replace(scene.members[0], role=Role.ORGANIZER)
    assert await announce(scene, audience, "more", by=other) == AnnouncementSent(0)
    found = AnnouncementRepository.find_nth_newest

    async def find(
        announcements: AnnouncementRepository, by: UserId | None, *rest: object
    ) -> object:
        assert rest[1] == (MAX_PER_ORGANIZER if by else MAX_PER_SITE)
        return await found(announcements, by, rest[0], MAX_PER_ORGANIZER)  # type: ignore[arg-type]

    monkeypatch.setattr(AnnouncementRepository, "find_nth_newest", find)
    limited = await announce(scene, audience, "even more", by=other)
    assert isinstance(limited, TooManyAnnouncements)
    scene.clock.advance(RATE_PERIOD)
    assert await announce(scene, audience, "more") == AnnouncementSent(0)


async def test_a_leader_writes_five_times_within_an_hour(scene: MailScene) -> None:
    audience, leader = Audience(await scene.insert_slot(), None), scene.members[0]
    sent = [await announce(scene, audience, str(n), by=leader) for n in range(6)]
    assert sent[:5] == [AnnouncementSent(0)] * 5
    assert isinstance(sent[5], TooManyAnnouncements)


@pytest.mark.parametrize(
    ("subject", "text", "field"),
    [
        ("", "text", "subject"),
        ("x" * 201, "text", "subject"),
        ("a\x00b", "text", "subject"),
        ("Pool", " \n ", "text"),
        ("Pool", "x" * 5001, "text"),
        ("Pool", "a\x00b", "text"),
    ],
)
async def test_an_empty_or_endless_text_is_refused(
    scene: MailScene, subject: str, text: str, field: str
) -> None:
    audience = Audience(await scene.insert_slot(), None)
    refused = await announce(scene, audience, subject=subject, text=text)
    assert isinstance(refused, InvalidInput)
    assert [problem.field for problem in refused.problems] == [field]


async def test_a_subject_adds_no_header(scene: MailScene) -> None:
    slot_id = await scene.insert_slot()
    await scene.book(slot_id, 0)
    await announce(scene, Audience(slot_id, None), subject="Pool\r\nBcc: eve@x.test")
    await scene.send(timedelta())
    assert all(message["Bcc"] is None for message in scene.trap.messages)
    assert all(mail.recipients == ("0@school.test",) for mail in scene.trap.mails)


async def test_an_unknown_audience_is_refused(scene: MailScene) -> None:
    slot_id, campaign_id = new_slot_id(), CampaignId("c" * 24)
    assert await announce(scene, Audience(slot_id, None)) == SlotNotFound(slot_id)
    refused = await announce(scene, Audience(None, campaign_id))
    assert refused == CampaignNotFound(campaign_id)
    assert await find_recipients(scene.services, Audience(slot_id, None)) == {}


async def test_an_announcement_waits_for_the_end_of_quiet_hours(scene: MailScene) -> None:
    slot_id = await scene.insert_slot()
    await scene.book(slot_id, 0)
    scene.clock.advance(timedelta(hours=14))  # 23:00 in Berlin
    assert await announce(scene, Audience(slot_id, None)) == AnnouncementSent(1)
    await scene.send(timedelta())
    [entry] = await scene.entries()
    due_at = scene.clock.now + timedelta(hours=8)
    assert (entry.state, entry.due_at) == (OutboxState.QUEUED, due_at)
    await scene.send(timedelta(hours=8))
    assert scene.trap.subjects == ["Pool"]


async def test_what_a_banned_user_wrote_before_is_not_sent(scene: MailScene) -> None:
    slot_id = await scene.insert_slot()
    await scene.book(slot_id, 0)
    leader = scene.members[1]
    for subject, by in (("from a leader", leader), ("from an organizer", scene.organizer)):
        sent = await announce(scene, Audience(slot_id, None), subject, subject, by=by)
        assert sent == AnnouncementSent(1)
    banned = {"_id": ObjectId(leader.user_id)}
    await scene.database["users"].update_one(banned, {"$set": {"bannedAt": scene.clock.now}})
    await scene.send()
    states = [each.state for each in await scene.entries()]
    assert sorted(states) == [OutboxState.SENT, OutboxState.SUPPRESSED]
    assert scene.trap.subjects == ["from an organizer"]
