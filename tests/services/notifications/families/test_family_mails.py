"""Guardians read in mails what happens to their children, once and by name; nobody else does."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from bson import ObjectId

from slotlock.domain.booking.booking import Booking, SlotId
from slotlock.domain.booking.booking_outcomes import Booked, BookingMoved
from slotlock.domain.booking.booking_refusals import SlotFull
from slotlock.domain.booking.decision import BookingChangeRequest
from slotlock.domain.booking.rules import booking_changes
from slotlock.domain.booking.rules.book import BookingRequest
from slotlock.domain.campaigns.campaign import CampaignDraft, CampaignSaved
from slotlock.domain.notifications.announcements import AnnouncementSent, Audience
from slotlock.domain.notifications.mail_kinds import (
    ANNOUNCEMENT,
    BOOKING_KINDS,
    CAMPAIGN_OPENS,
    COLLECTED_FOR,
    DRAW_RESULT,
    TICKET_DECIDED,
    mails_about,
    ticket_mail,
)
from slotlock.domain.notifications.outbox import Channel, OutboxEntry, OutboxState
from slotlock.domain.users.user import Caller, Role, User, UserId
from slotlock.infrastructure.mail.mail_texts import render
from slotlock.infrastructure.mongo.ids import new_booking_id
from slotlock.infrastructure.mongo.outbox.outbox_repository import OutboxFilter, OutboxRepository
from slotlock.infrastructure.mongo.users.user_documents import new_login_name
from slotlock.infrastructure.mongo.users.user_repository import UserRepository
from slotlock.infrastructure.redis.admission.admission_queue import QueuedBooking
from slotlock.infrastructure.redis.admission.partitions import StreamEntry
from slotlock.infrastructure.redis.locks.lock_leases import InProcessLockLease
from slotlock.services.admission.queued_batch import serve_batch
from slotlock.services.booking import waitlist
from slotlock.services.booking.book import BookSlotCommand
from slotlock.services.booking.booking_changes import change_booking
from slotlock.services.booking.move import move
from slotlock.services.campaigns import campaigns
from slotlock.services.commands.executor import execute
from slotlock.services.container import Services
from slotlock.services.idempotency_key import IdempotencyKey
from slotlock.services.notifications import mailer
from slotlock.services.notifications.announcements import send_announcement
from slotlock.services.notifications.outbox_reader import OutboxReader
from slotlock.services.notifications.recipients import to_recipients
from slotlock.services.slots import calendars, editing
from tests.support.domain.builders import build_patch
from tests.support.notifications.mail_scene import URL, MailScene

HOUR = timedelta(hours=1)


@pytest.fixture
async def family(scene: MailScene) -> Sequence[Caller]:
    """Insert Mia, who has two guardians, and Ben, who has the first of them."""
    [first, second] = scene.members[:2]
    mia = await insert_child(scene, "Mia Becker", first, second)
    return mia, await insert_child(scene, "Ben <b> Becker", first)


async def insert_child(
    scene: MailScene, name: str, *guardians: Caller, address: str | None = None
) -> Caller:
    """Insert a user of class 2b whose guardians are these, without a login name by default."""
    services, now = scene.services, scene.clock.now
    login_name = address or new_login_name()
    user = await services.users.insert(name, login_name, Role.MEMBER, "no password", now)
    assert user is not None
    facts = {"guardians": [ObjectId(each.user_id) for each in guardians]}
    await change_user(scene, user.id, familyName="Becker", groups=["2b"], **facts)
    return Caller(user.id, Role.MEMBER, "session", now)


async def change_user(scene: MailScene, user_id: UserId, **fields: object) -> None:
    """Set fields of a stored user."""
    query = {"_id": ObjectId(user_id)}
    await scene.database["users"].update_one(query, {"$set": fields})


async def book_for(scene: MailScene, guardian: Caller, child: Caller, slot_id: SlotId) -> Booking:
    """Book a place for a child, as its guardian."""
    request = BookingRequest(child.user_id, new_booking_id(), guardian.user_id)
    result = await execute(scene.services, BookSlotCommand(guardian, slot_id, request), 0)
    assert isinstance(result.outcome, Booked)
    return result.outcome.booking


def mails_of(scene: MailScene) -> list[tuple[str, str, str]]:
    """Return the address, the subject and the text of each mail that arrived, in this order."""
    found = []
    for message in scene.trap.messages:
        body = message.get_body(["plain"])
        assert body is not None
        text = str(body.get_content()).replace("\r\n", "\n")
        found.append((str(message["To"]).split("<")[1][:-1], str(message["Subject"]), text))
    return sorted(found)


async def test_what_happens_to_two_children_within_a_minute_is_one_mail_to_each_guardian(
    scene: MailScene, family: Sequence[Caller]
) -> None:
    (mia, ben), [first, second] = family, scene.members[:2]
    async with scene.reading():
        yoga, judo = await scene.insert_slot(), await scene.insert_slot(title="Judo")
        booking = await book_for(scene, first, mia, yoga)
        await book_for(scene, first, ben, judo)
        entries = await scene.until_entries("booked", "booked", "booked")
    about_mia = [each for each in entries if each.dependent_id == mia.user_id]
    assert {each.id for each in about_mia} == {
        f"booked:{booking.id}:0:{guardian.user_id}" for guardian in (first, second)
    }
    await scene.send()
    [to_first, to_second] = mails_of(scene)
    address, subject, text = to_first
    assert (address, subject) == (
        "0@school.test",
        "2 changes to the bookings of Mia, Ben <b>",
    )
    assert "Mia has a place.\n\nMia: Yoga\n" in text
    assert "Ben <b> has a place.\n\nBen <b>: Judo\n" in text
    address, subject, text = to_second
    assert (address, subject) == ("1@school.test", "Mia has a place: Yoga")
    assert "Member 0 has booked a place for Mia.\n\nMia: Yoga\n" in text
    assert "Ben" not in text
    sources = {str(each["To"])[:8]: each for each in scene.trap.messages}
    page = sources["Member 0"].get_body(["html"])
    assert page is not None
    assert "Ben &lt;b&gt;: Judo" in page.get_content()
    attached = [part.get_content() for part in sources["Member 0"].iter_attachments()]
    assert ["SUMMARY:Mia: Yoga" in each for each in attached].count(True) == 1
    assert {each.state for each in await scene.entries()} == {OutboxState.SENT}


async def test_no_sentence_that_begins_with_a_name_is_a_link(scene: MailScene) -> None:
    """Chinese has no blanks: a name that is an address would end with the sentence."""
    [first, second] = scene.members[:2]
    name = "https://evil.test/免费"
    mia = await insert_child(scene, name, first, second)
    for guardian in (first, second):
        await change_user(scene, guardian.user_id, name=name, locale="zh")
    async with scene.reading():
        slot_id = await scene.insert_slot(title="瑜伽", location="https://school.test/地图")
        await book_for(scene, first, mia, slot_id)
        await scene.until_entries("booked", "booked")
    await scene.send()
    for message in scene.trap.messages:
        page = message.get_body(["html"])
        assert page is not None
        links = re.findall('href="([^"]*)"', page.get_content())
        assert links == ["https://school.test/地图", f"{URL}#/slot/slot_{slot_id}"]
    assert len(scene.trap.messages) == 2


async def test_the_other_guardian_reads_who_gave_a_place_back(
    scene: MailScene, family: Sequence[Caller]
) -> None:
    mia, slot_id = family[0], await scene.insert_slot()
    guardian = replace(scene.members[0], acts_for=frozenset({mia.user_id}))
    booking = await book_for(scene, guardian, mia, slot_id)
    scene.clock.advance(HOUR)
    async with scene.reading():
        request = BookingChangeRequest(slot_id, booking.id, guardian)
        await change_booking(scene.services, booking_changes.cancel, request)
        await scene.until_entries("cancelled", "cancelled")
    await scene.send()
    [(_, subject, own), (_, other_subject, other)] = mails_of(scene)
    assert (subject, other_subject) == ("Given back: Yoga", "Mia lost a place: Yoga")
    assert "You have given Mia's place back." in own
    assert "Member 0 has canceled Mia's place." in other


async def test_who_took_a_child_off_a_list_gets_no_mail_of_it_and_the_others_do(
    scene: MailScene, family: Sequence[Caller]
) -> None:
    mia, slot_id = family[0], await scene.insert_slot(capacity=1)
    await scene.book(slot_id, 2)
    scene.clock.advance(HOUR)
    async with scene.reading():
        for by in (scene.members[0], mia):
            await waitlist.join(scene.services, slot_id, mia.user_id, 0)
            await waitlist.remove(scene.services, slot_id, mia.user_id, by.user_id)
        entries = await scene.until_entries(*["waitlist_ended"] * 3)
    [first, second] = (each.user_id for each in scene.members[:2])
    assert [each.user_id for each in entries].count(first) == 1  # as Mia left the list herself
    assert [each.user_id for each in entries].count(second) == 2
    await scene.send()
    assert all("Mia is no longer on the waiting list" in text for _, _, text in mails_of(scene))


@pytest.mark.parametrize("is_guarded", [True, False])
@pytest.mark.parametrize("is_banned", [True, False])
async def test_a_former_or_banned_guardian_gets_no_mail_that_was_queued_before(
    scene: MailScene,
    family: Sequence[Caller],
    monkeypatch: pytest.MonkeyPatch,
    is_banned: bool,
    is_guarded: bool,
) -> None:
    """Without the check when it is sent, the former guardian reads of the child: the control."""
    mia, slot_id = family[0], await scene.insert_slot()
    async with scene.reading():
        await book_for(scene, scene.members[1], mia, slot_id)
        await scene.until_entries("booked", "booked")
    if is_banned:
        await change_user(scene, scene.members[0].user_id, banned=True, bannedAt=scene.clock.now)
    else:
        await change_user(scene, mia.user_id, guardians=[ObjectId(scene.members[1].user_id)])
    if not is_guarded:

        async def find_all(
            services: Services, entries: Sequence[OutboxEntry]
        ) -> Mapping[UserId, User]:
            dependents = [each.dependent_id for each in entries if each.dependent_id]
            return await services.users.find_many(dependents)

        monkeypatch.setattr(mailer, "find_dependents", find_all)
    await scene.send()
    addresses = [address for address, _, _ in mails_of(scene)]
    assert addresses == (["1@school.test"] if is_guarded else ["0@school.test", "1@school.test"])
    notes = {each.note for each in await scene.entries() if each.state is OutboxState.SUPPRESSED}
    assert notes == ({"the user is no longer a guardian, or banned"} if is_guarded else set())


async def test_a_banned_guardian_reads_of_own_places_only_and_no_announcement_counts_them(
    scene: MailScene, family: Sequence[Caller]
) -> None:
    (mia, _), [banned, second] = family, scene.members[:2]
    slot_id = await scene.insert_slot()
    async with scene.reading():
        await scene.book(await scene.insert_slot(title="Choir"), 0)
        await book_for(scene, second, mia, slot_id)
        await scene.until_entries("booked", "booked", "booked")
    await change_user(scene, banned.user_id, banned=True, bannedAt=scene.clock.now)
    services, audience = scene.services, Audience(slot_id, None)
    sent = await send_announcement(services, scene.organizer, audience, "Pool", "Towels", "key")
    assert sent == AnnouncementSent(1)
    await scene.send()
    subjects = [(address[0], subject) for address, subject, _ in mails_of(scene)]
    assert subjects == [
        ("0", "You have a place: Choir"),
        ("1", "Mia has a place: Yoga"),
        ("1", "Pool"),
    ]


async def test_what_is_left_of_a_mail_leaves_out_the_child_of_a_former_guardian(
    scene: MailScene, family: Sequence[Caller]
) -> None:
    (mia, ben), slot_id = family, await scene.insert_slot()
    async with scene.reading():
        for child in family:
            await book_for(scene, scene.members[0], child, slot_id)
        await scene.until_entries("booked", "booked", "booked")
    await change_user(scene, mia.user_id, guardians=[])
    await scene.send()
    [(address, subject, text)] = mails_of(scene)
    assert (address, subject) == ("0@school.test", "Ben <b> has a place: Yoga")
    assert "Mia" not in text
    assert ben.user_id in {each.about_id for each in await scene.entries()}


async def test_a_guardian_without_an_address_is_left_out_and_a_child_with_one_is_not(
    scene: MailScene,
) -> None:
    first, second = scene.members[:2]
    zoe = await insert_child(scene, "Zoe Becker", first, second, address="zoe@school.test")
    await change_user(scene, first.user_id, email="grandpa")
    await change_user(scene, second.user_id, locale="de")
    await change_user(scene, zoe.user_id, locale="en")
    async with scene.reading():
        await book_for(scene, second, zoe, await scene.insert_slot())
        await scene.until_entries("booked", "booked", "booked")
    await scene.send()
    [to_guardian, to_child] = mails_of(scene)
    assert to_guardian[:2] == ("1@school.test", "Zoe hat einen Platz: Yoga")
    assert to_child[:2] == ("zoe@school.test", "You have a place: Yoga")
    assert "Member 1 has booked a place for you.\n\nYoga\n" in to_child[2]
    [skipped] = [each for each in await scene.entries() if each.state is OutboxState.SUPPRESSED]
    assert (skipped.user_id, skipped.note) == (first.user_id, "the account has no email address")


async def test_a_reader_that_died_in_between_is_repeated_without_doubles(
    scene: MailScene, family: Sequence[Caller], monkeypatch: pytest.MonkeyPatch
) -> None:
    slot_id, insert = await scene.insert_slot(), OutboxRepository.insert
    async with scene.reading():
        await scene.book(slot_id, 2)
        await scene.until_entries("booked")
    for child in family:
        await book_for(scene, scene.members[0], child, slot_id)

    async def insert_and_die(
        outbox: OutboxRepository, entries: Sequence[OutboxEntry], now: datetime
    ) -> int:
        await insert(outbox, entries[1:3], now)
        raise MemoryError

    monkeypatch.setattr(OutboxRepository, "insert", insert_and_die)
    reader = OutboxReader(scene.services, Channel.MAIL, [mails_about])
    with pytest.raises(MemoryError):
        await reader.read_while_held(InProcessLockLease((), 1))
    monkeypatch.undo()
    async with scene.reading():
        await scene.until_entries(*["booked"] * 4)
    await scene.send()
    assert [address[0] for address, _, _ in mails_of(scene)] == ["0", "1", "2"]


async def test_what_greylisted_mails_would_have_said_is_in_the_next_ones_to_a_guardian(
    scene: MailScene, family: Sequence[Caller]
) -> None:
    slots = [await scene.insert_slot(title=title) for title in ("Alpha", "Beta", "Gamma")]
    guardian, ben, by = scene.members[0], family[1], scene.organizer

    async def send(*kinds: str, is_greylisted: bool) -> None:
        response = "451 greylisted" if is_greylisted else None
        scene.trap.respond_to_recipient = lambda _: response
        await scene.until_entries(*kinds)
        await scene.send()

    async def edit(*places: str) -> None:
        for location in places:
            scene.clock.advance(timedelta(seconds=1))
            patch = build_patch(location=location)
            await editing.edit(scene.services, slots[0], patch, by.user_id)

    async with scene.reading():
        booking = await book_for(scene, guardian, ben, slots[0])
        await send("booked", is_greylisted=False)
        await edit("Hall 1")
        await send("booked", "edited", is_greylisted=True)
        await edit("Hall 2", "Hall 1")
        await send("booked", *["edited"] * 3, is_greylisted=False)
        moved = booking
        for number, is_greylisted in ((1, True), (2, False)):
            request = BookingChangeRequest(slots[number - 1], moved.id, by)
            result = await move(scene.services, request, slots[number])
            assert isinstance(result.outcome, BookingMoved)
            moved = result.outcome.booking
            kinds = ("booked", *["edited"] * 3, *["moved"] * number)
            await send(*kinds, is_greylisted=is_greylisted)
    subjects = scene.trap.subjects
    expected = ["Ben <b> has a place: Alpha", "Location changed: Alpha", "Moved: Gamma"]
    assert subjects == expected
    [*_, of_move] = scene.trap.messages
    text = of_move.get_body(["plain"])
    assert text is not None
    content = text.get_content().replace("\r\n", "\n")
    assert "Olga has moved Ben <b> to another course. It was:\n\nAlpha\n" in content


async def test_users_are_read_once_for_all_changes_and_guardians_only_when_a_mail_is_sent(
    scene: MailScene, family: Sequence[Caller], monkeypatch: pytest.MonkeyPatch
) -> None:
    read, original = list[int](), UserRepository.find_many

    async def find_many(users: UserRepository, user_ids: Iterable[UserId]) -> dict[UserId, User]:
        ids = list(user_ids)
        read.append(len(ids))
        return await original(users, ids)

    monkeypatch.setattr(UserRepository, "find_many", find_many)
    slots = [await scene.insert_slot() for _ in range(3)]
    for slot_id in slots:
        for child in family:
            await book_for(scene, scene.members[0], child, slot_id)
        await scene.book(slot_id, 2)
    changes = await scene.services.slot_changes.read(slots, scene.clock.now)
    entries = [entry for each in changes for entry in mails_about(each)]
    read.clear()
    assert len(await to_recipients(scene.services, entries)) == 3 * (2 + 1 + 1)
    assert read == [3]
    messages = [replace(each, channel=Channel.WEBHOOK) for each in entries]
    assert await to_recipients(scene.services, messages) == messages
    assert read == [3]


async def test_reminders_about_children_are_one_mail_unless_their_guardian_refuses_them(
    scene: MailScene, family: Sequence[Caller]
) -> None:
    await scene.schedule()
    for child, title in zip(family, ("Yoga", "Judo"), strict=True):
        slot_id = await scene.insert_slot(title=title, reminder_minutes=120)
        await book_for(scene, scene.members[0], child, slot_id)
    await change_user(scene, scene.members[1].user_id, refusedTopics=["reminders"])
    await change_user(scene, family[0].user_id, refusedTopics=["reminders"])
    for later in (22 * HOUR, timedelta()):
        await scene.schedule(later)
    await scene.send()
    [(address, subject, text)] = mails_of(scene)
    assert address == "0@school.test"
    assert sorted(subject.split(": ")[1].split()) in (["(+1)", "Judo"], ["(+1)", "Yoga"])
    assert "Mia's course begins soon.\n\nMia: Yoga\n" in text
    assert "Ben <b>'s course begins soon.\n\nBen <b>: Judo\n" in text
    assert f"/unsubscribe/{scene.members[0].user_id}.reminders" in text


async def test_a_guardian_reads_once_when_children_can_book_and_not_of_former_ones(
    scene: MailScene, family: Sequence[Caller]
) -> None:
    await scene.schedule()
    opens_at = scene.clock.now + 30 * HOUR
    draft = CampaignDraft(
        "Week",
        opens_at,
        opens_at + HOUR,
        published=True,
        eligible_groups=(("2b",),),
        opening_mail_hours=24,
    )
    saved = await campaigns.create(scene.services, draft, scene.organizer.user_id)
    assert isinstance(saved, CampaignSaved), saved
    for child in family:
        await change_user(scene, child.user_id, refusedTopics=["announcements"])
    await scene.schedule(6 * HOUR)
    await change_user(scene, family[0].user_id, guardians=[ObjectId(scene.members[0].user_id)])
    await scene.send(timedelta())
    [(address, subject, text)] = mails_of(scene)
    assert (address, subject) == ("0@school.test", "Booking opens soon: Week")
    assert re.search(r"You can book for (Mia, Ben <b>|Ben <b>, Mia) from Tue", text)


async def test_an_announcement_is_one_mail_to_a_guardian_of_several_children(
    scene: MailScene, family: Sequence[Caller]
) -> None:
    slot_id = await scene.insert_slot()
    for child in family:
        await book_for(scene, scene.members[0], child, slot_id)
    await scene.book(slot_id, 1)  # who has a place gets it for that, though Mia has one, too
    services, audience = scene.services, Audience(slot_id, None)
    sent = await send_announcement(services, scene.organizer, audience, "Pool", "Towels", "key")
    assert sent == AnnouncementSent(2)
    for child in family:
        about = await services.outbox.page(OutboxFilter(about_id=child.user_id), 10)
        assert [each.user_id for each in about.items] == [scene.members[0].user_id]
    await change_user(scene, family[1].user_id, guardians=[ObjectId(scene.members[2].user_id)])
    await scene.send(timedelta())
    [(first, _, of_guardian), (second, _, own)] = mails_of(scene)
    assert (first, second) == ("0@school.test", "1@school.test")
    assert "Olga writes about Yoga (Mia):\n\nTowels" in of_guardian
    assert "Olga writes about Yoga:\n\nTowels" in own


async def test_a_ticket_of_a_child_is_decided_by_mail_to_its_guardians_only(
    scene: MailScene, family: Sequence[Caller]
) -> None:
    (mia, ben), services, now = family, scene.services, scene.clock.now
    yoga, judo = await scene.insert_slot(capacity=1), await scene.insert_slot(title="Judo")
    await scene.book(yoga, 2)
    services.sends_mail = True
    key = IdempotencyKey.for_request(mia.user_id, "k", yoga)
    hashes = (key.key_hash, key.short_request_hash)
    queued = QueuedBooking(yoga, mia.user_id, mia.user_id, False, *hashes)
    ticket = StreamEntry("1-0", {}, queued, now - 2 * HOUR)
    assert await serve_batch(services, yoga, [ticket]) == [ticket]
    for by in (scene.members[0], scene.members[2]):
        ids = (judo, ben.user_id, by.user_id)
        mail = ticket_mail(*ids, now - 2 * HOUR, SlotFull(judo), now, by.user_id)
        assert mail is not None
        await services.outbox.insert(await to_recipients(services, [mail]), now)
    entries = await scene.entries()
    assert [each.due_at - now for each in entries] == [COLLECTED_FOR] * 3
    await scene.send()
    [(first, subject, text), (second, other_subject, _)] = mails_of(scene)
    assert (first, second) == ("0@school.test", "1@school.test")
    assert subject in ("No place for Mia: Yoga (+1)", "No place for Ben <b>: Judo (+1)")
    assert other_subject == "No place for Mia: Yoga"
    assert "The request for Ben <b> was decided.\nAll places are taken.\n\nBen <b>: Judo" in text


async def test_the_calendar_of_a_guardian_has_the_bookings_of_all_children_by_name(
    scene: MailScene, family: Sequence[Caller]
) -> None:
    yoga, judo = await scene.insert_slot(), await scene.insert_slot(title="Judo")
    first, second = scene.members[:2]
    for slot_id, child in zip((yoga, judo), family, strict=True):
        await book_for(scene, first, child, slot_id)
    await scene.book(await scene.insert_slot(title="Choir"), 0)

    async def titles_of(user_id: UserId) -> set[str]:
        user = await scene.services.users.find_soon(user_id)
        assert user is not None
        events = await calendars.user_calendar(scene.services, user, "")
        return {each.title for each in events}

    assert await titles_of(first.user_id) == {"Choir", "Mia: Yoga", "Ben <b>: Judo"}
    assert await titles_of(second.user_id) == {"Mia: Yoga"}
    assert await titles_of(family[0].user_id) == {"Yoga"}
    await change_user(scene, family[0].user_id, guardians=[ObjectId(first.user_id)])
    assert await titles_of(second.user_id) == set()


# Words for the user of a booking, which a guardian shall not read in place of those for the child.
OWN_WORDS = {
    "en": r"\byour?\b(?! can book for Mia)",
    "de": r"\b(dich|dein\w*|du (hast|bist|stehst|wurdest|konntest))\b",
    "de-formal": r"\b(ihre?n?|sie (haben|sind|stehen|wurden|konnten))\b",
    "zh": "你(?!好|可以)",
}
CHILD_KINDS = (*BOOKING_KINDS, TICKET_DECIDED, CAMPAIGN_OPENS, ANNOUNCEMENT, DRAW_RESULT)


@pytest.mark.parametrize("language", OWN_WORDS)
@pytest.mark.parametrize("kind", [kind.name for kind in CHILD_KINDS])
def test_a_mail_to_a_guardian_says_everything_of_the_child(kind: str, language: str) -> None:
    texts = ("title", "when", "place", "link", "note", "url", "deadline", "about", "text")
    others = ("announced_subject", "old_title", "old_when", "old_place", "old_link")
    values: dict[str, object] = {
        **dict.fromkeys((*texts, *others), "x"),
        **dict.fromkeys(("by", "by_user", "slot_cancelled", "has_others", "reason")),
        "granted": (),
        "changed": ("time",),
        "wish_count": 3,
        "number": 5,
        "child": "Mia",
    }
    shared = {"name": "", "site_name": "School", "closing": "", "formal": "formal" in language}
    variants: tuple[Mapping[str, object], ...] = (
        *({"reason": each} for each in ("SLOT_FULL", "GROUP_FULL", "LIMIT_REACHED", "OTHER")),
        *({"reason": "TIME_CONFLICT", "by": "Olga"}, {"granted": ["x"]}, {"wish_count": 1}),
    )
    for changes in variants:
        mail = render(language[:2], [(kind, {**values, **changes})], **shared)
        assert "Mia" in mail.text
        words = re.search(OWN_WORDS[language], f"{mail.subject}\n{mail.text}", re.IGNORECASE)
        assert words is None, mail.text
