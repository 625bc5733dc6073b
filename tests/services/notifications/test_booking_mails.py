"""Who gets a place, loses it or is moved gets a mail that says so, with the calendar's change."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from icalendar import Calendar

from slotlock.domain.booking.booking import BookingId, SlotId
from slotlock.domain.booking.booking_outcomes import BookingMoved
from slotlock.domain.booking.decision import BookingChangeRequest
from slotlock.domain.booking.rules import booking_changes
from slotlock.domain.campaigns.campaign import Campaign
from slotlock.domain.campaigns.terms import CampaignTerms
from slotlock.domain.notifications import booking_news
from slotlock.domain.notifications.mail_kinds import first_mail
from slotlock.domain.notifications.outbox import OutboxState
from slotlock.domain.resources.resource import Resource, ResourceKind
from slotlock.domain.schedule.meetings import Meeting
from slotlock.domain.schedule.timetables import Timetable
from slotlock.domain.site.site import FormOfAddress
from slotlock.domain.users.user import Caller
from slotlock.infrastructure.mongo.ids import new_campaign_id
from slotlock.infrastructure.mongo.slots.slot_query import SlotQuery
from slotlock.infrastructure.redis.admission.admission_queue import QueuedBooking
from slotlock.infrastructure.redis.admission.partitions import StreamEntry
from slotlock.services.admission.queued_batch import serve_batch
from slotlock.services.booking import waitlist
from slotlock.services.booking.booking_changes import change_booking
from slotlock.services.booking.move import move
from slotlock.services.idempotency_key import IdempotencyKey
from slotlock.services.notifications.booking_mails import OVERTAKEN
from slotlock.services.site.current_site import update
from slotlock.services.slots import calendars, editing
from slotlock.services.workers import hold_sweeper
from tests.support.domain.builders import build_patch
from tests.support.notifications.mail_scene import SCHOOL, MailScene


async def test_a_booking_is_a_mail_with_an_invitation(scene: MailScene) -> None:
    async with scene.reading():
        slot_id = await scene.insert_slot(title="Yoga <b> & mehr", location="Halle 2")
        [booking_id] = await scene.book(slot_id, 0)
        [entry] = await scene.until_entries("booked")
    assert entry.id == f"booked:{booking_id}:0"
    await scene.send()
    [message] = scene.trap.messages
    assert message["To"] == "Member 0 <0@school.test>"
    assert message["From"] == "School <noreply@school.test>"
    assert message["Reply-To"] == "office@school.test"
    assert message["Subject"] == "You have a place: Yoga <b> & mehr"
    assert "Tue, January 3, 2040, 09:00–10:00 (Berlin time)\nHalle 2" in text_of(scene)  # noqa: RUF001
    assert f"https://school.test/board#/slot/slot_{slot_id}" in text_of(scene)
    assert "Yoga &lt;b&gt; &amp; mehr" in text_of(scene, kind="html")
    [(method, event)] = events_of(scene)
    assert method == "REQUEST"
    assert event["UID"] == f"{booking_id}-1@slotlock"
    assert event["SEQUENCE"] == 0
    assert event["ATTENDEE"] == "mailto:0@school.test"


async def test_the_link_of_a_meeting_goes_to_users_with_a_confirmed_place(
    scene: MailScene,
) -> None:
    room, other_room = "https://meet.example/room", "https://meet.example/other"
    slot_id = await scene.insert_slot(meeting_url=room)
    async with scene.reading():
        await scene.book(slot_id, 0)
        await scene.book(slot_id, 1, hold=True)
        await scene.until_entries("booked", "held")
        await scene.send()
        scene.clock.advance(timedelta(minutes=1))
        edit = build_patch(meeting_url=other_room)
        await editing.edit(scene.services, slot_id, edit, scene.organizer.user_id)
        await scene.until_entries("booked", "held", "edited")
        await scene.send()
    texts = {message["Subject"]: number for number, message in enumerate(scene.trap.messages)}
    held = next(number for subject, number in texts.items() if "confirm" in subject.lower())
    assert room not in str(scene.trap.messages[held])
    assert "URL" not in events_of(scene, held)[0][1]
    booked, edited = texts["You have a place: Yoga"], texts["Location changed: Yoga"]
    assert f"(Berlin time)\n{room}\n" in text_of(scene, booked)
    assert f'<a href="{room}"' in text_of(scene, booked, kind="html")
    assert text_of(scene, edited).index(room) < text_of(scene, edited).index(other_room)
    [(_, event)] = events_of(scene, edited)
    assert (event["URL"], event["LOCATION"], event["SEQUENCE"]) == (other_room, other_room, 1)
    page = f"https://school.test/board#/slot/slot_{slot_id}"
    assert event["DESCRIPTION"] == f"{other_room}\n\nYour booking, also to give it back:\n{page}"


async def test_a_cancellation_says_by_whom_and_removes_the_event(scene: MailScene) -> None:
    slot_id = await scene.insert_slot()
    bookings = await scene.book(slot_id, 0, 1)
    scene.clock.advance(timedelta(hours=1))
    async with scene.reading():
        for booking_id, caller in zip(bookings, (scene.members[0], scene.organizer), strict=True):
            await change_booking(
                scene.services, booking_changes.cancel, request(slot_id, booking_id, caller)
            )
        await scene.until_entries("cancelled", "cancelled")
    await scene.send()
    texts = sorted(text_of(scene, number) for number in range(2))
    assert "You have given your place back." in texts[0]
    assert "Olga has taken your place away." in texts[1]
    assert sorted(scene.trap.subjects) == ["Given back: Yoga", "You lost your place: Yoga"]
    [(method, event)] = events_of(scene)
    assert (method, event["STATUS"], event["SEQUENCE"]) == ("CANCEL", "CANCELLED", 1)


async def test_its_cancellation_and_its_new_place_are_mails_to_all_bookings_of_a_slot(
    scene: MailScene,
) -> None:
    for room in ("Aula", "Gym"):
        await scene.services.resources.insert(Resource(room))
    slot_id = await scene.insert_slot(location="Halle 2", resource="Aula")
    await scene.book(slot_id, 0, 1)
    scene.clock.advance(timedelta(hours=1))
    async with scene.reading():
        edit = build_patch(location="Halle 3", several_resources=("Aula", "Gym"), title="Yoga")
        await editing.edit(scene.services, slot_id, edit, scene.organizer.user_id)
        await scene.until_entries("edited", "edited")
        await scene.send()
        await editing.cancel(scene.services, slot_id, scene.organizer.user_id)
        await scene.until_entries("edited", "edited", "cancelled", "cancelled")
        await scene.send()
    assert sorted(scene.trap.subjects) == [
        "Does not take place: Yoga",
        "Does not take place: Yoga",
        "Location changed: Yoga",
        "Location changed: Yoga",
    ]
    before, after = text_of(scene).split("Halle 3", 1)
    assert "Halle 2, Aula\n" in before
    assert after.startswith(", Aula, Gym\n")
    assert "Olga has canceled the course for everyone." in text_of(scene, 2)
    methods = [
        (method, event["SEQUENCE"])
        for number in (0, 2)
        for method, event in events_of(scene, number)
    ]
    assert methods == [("REQUEST", 1), ("CANCEL", 3)]


async def test_a_move_is_one_mail_that_removes_one_event_and_adds_another(
    scene: MailScene,
) -> None:
    slot_id, other_id = await scene.insert_slot(title="Yoga"), await scene.insert_slot(title="Judo")
    [booking_id] = await scene.book(slot_id, 0)
    scene.clock.advance(timedelta(hours=1))
    async with scene.reading():
        await move(scene.services, request(slot_id, booking_id, scene.organizer), other_id)
        await scene.until_entries("moved")
    await scene.send()
    assert scene.trap.subjects == ["Moved: Judo"]
    assert "Olga has moved you to another course. It was:\n\nYoga\n" in text_of(scene)
    [(method, added), (other_method, removed)] = events_of(scene)
    assert (method, added["SUMMARY"], added["SEQUENCE"]) == ("REQUEST", "Judo", 0)
    assert (other_method, removed["UID"], removed["SEQUENCE"]) == (
        *("CANCEL", f"{booking_id}-1@slotlock", 1),
    )


async def test_the_waiting_list_promotes_and_ends_by_mail(scene: MailScene) -> None:
    slot_id = await scene.insert_slot(capacity=1)
    [booking_id] = await scene.book(slot_id, 0)
    for member in scene.members[1:3]:
        await waitlist.join(scene.services, slot_id, member.user_id, 0)
    scene.clock.advance(timedelta(hours=1))
    async with scene.reading():
        await change_booking(
            scene.services, booking_changes.cancel, request(slot_id, booking_id, scene.members[0])
        )
        await scene.until_entries("cancelled", "promoted")
        await editing.cancel(
            scene.services, slot_id, scene.organizer.user_id, reason="Eve has the flu"
        )
        await scene.until_entries("cancelled", "promoted", "cancelled", "waitlist_ended")
    await scene.send()
    # The second member was promoted and lost the place again within a minute: that is one mail.
    given_back, *cancelled = sorted(scene.trap.subjects, reverse=True)
    assert (given_back, cancelled) == ("Given back: Yoga", ["Does not take place: Yoga"] * 2)
    texts = [text_of(scene, number) for number in range(3)]
    why = "Olga has canceled the course for everyone.\n\nReason: Eve has the flu\n\nYoga\n"
    assert [why in text for text in texts].count(True) == 2
    assert sum("Reason" in text for text in texts) == 2


async def test_who_waits_again_reads_nothing_of_the_end_of_the_waiting_list(
    scene: MailScene,
) -> None:
    slot_id = await scene.insert_slot(capacity=1)
    await scene.book(slot_id, 0)
    scene.clock.advance(timedelta(hours=1))
    async with scene.reading():
        for number in (1, 2):
            user_id = scene.members[number].user_id
            await waitlist.join(scene.services, slot_id, user_id, 0)
            await waitlist.remove(scene.services, slot_id, user_id, scene.organizer.user_id)
        await waitlist.join(scene.services, slot_id, scene.members[1].user_id, 0)
        await scene.until_entries("waitlist_ended", "waitlist_ended")
    await scene.send()
    [message] = scene.trap.messages
    assert message["To"] == "Member 2 <2@school.test>"


async def test_the_start_of_a_slot_ends_its_waiting_list_by_mail(scene: MailScene) -> None:
    slot_id = await scene.insert_slot(capacity=1)
    await scene.book(slot_id, 0)
    await waitlist.join(scene.services, slot_id, scene.members[1].user_id, 0)
    scene.clock.advance(timedelta(hours=1))
    async with scene.reading():
        scene.clock.advance(timedelta(hours=23))
        await hold_sweeper.sweep(scene.services)
        await scene.until_entries("waitlist_ended")
    await scene.send()
    [message] = scene.trap.messages
    assert message["Subject"] == "The waiting list has ended: Yoga"
    assert message["To"] == "Member 1 <1@school.test>"


async def test_a_course_is_a_line_of_its_mail(scene: MailScene) -> None:
    starts = [datetime(2040, 1, 9, 9, tzinfo=UTC) + timedelta(weeks=week) for week in range(8)]
    meetings = tuple(Meeting(each, each + timedelta(hours=1)) for each in starts if each.day != 30)
    start, end = meetings[0].start, meetings[-1].end
    async with scene.reading():
        slot_id = await scene.insert_slot(start=start, end=end, meetings=meetings)
        await scene.book(slot_id, 0)
        await scene.until_entries("booked")
    await scene.send()
    line = "Mondays 10:00–11:00, January 9 to February 27, 2040, not on January 30 (Berlin time)"  # noqa: RUF001
    assert line in text_of(scene)
    [(_, event)] = events_of(scene)
    assert event["RRULE"].to_ical() == b"FREQ=WEEKLY;COUNT=8;INTERVAL=1;BYDAY=MO"
    assert [each.dt for each in event["EXDATE"].dts] == [starts[3]]


async def test_changes_of_a_user_within_a_minute_are_one_mail(scene: MailScene) -> None:
    async with scene.reading():
        for title in ("Yoga", "Judo", "Chess"):
            await scene.book(await scene.insert_slot(title=title), 0)
        await scene.until_entries("booked", "booked", "booked")
    await scene.send()
    assert scene.trap.subjects == ["3 changes to your bookings"]
    assert all(title in text_of(scene) for title in ("Yoga", "Judo", "Chess"))
    assert [str(event["SUMMARY"]) for _, event in events_of(scene)] == ["Yoga", "Judo", "Chess"]
    assert {each.state.value for each in await scene.entries()} == {"sent"}


async def test_the_note_of_a_campaign_stands_once_in_a_mail_about_its_bookings(
    scene: MailScene,
) -> None:
    day, note = timedelta(days=1), "Bring shoes & <b>socks</b>.\n\nhttps://school.test/map"
    campaign_id = new_campaign_id()
    terms = CampaignTerms(campaign_id, 1, True, scene.clock.now - day, scene.clock.now + day)
    campaign = Campaign(campaign_id, "Sports", terms, mail_note=note)
    await scene.services.campaigns.insert(campaign, scene.clock.now)
    async with scene.reading():
        for of_slot in (terms, terms, None):
            await scene.book(await scene.insert_slot(terms=of_slot), 0)
        await scene.until_entries("booked", "booked", "booked")
    await scene.send()
    assert text_of(scene).count(f"\n\n{note}\n\n") == 1
    html = text_of(scene, kind="html")
    assert "Bring shoes &amp; &lt;b&gt;socks&lt;/b&gt;." in html
    assert '<a href="https://school.test/map"' in html


async def test_the_note_of_a_campaign_stands_in_no_mail_about_a_lost_place(
    scene: MailScene,
) -> None:
    day, campaign_id = timedelta(days=1), new_campaign_id()
    terms = CampaignTerms(campaign_id, 2, True, scene.clock.now - day, scene.clock.now + day)
    campaign = Campaign(campaign_id, "Sports", terms, mail_note="Bring shoes.")
    await scene.services.campaigns.insert(campaign, scene.clock.now)
    slot_ids = [await scene.insert_slot(title=title, terms=terms) for title in ("Yoga", "Judo")]
    [booking_id] = await scene.book(slot_ids[0], 0)
    await scene.book(slot_ids[0], 1, hold=True)
    [other] = await scene.book(slot_ids[0], 2)
    scene.clock.advance(timedelta(minutes=2))
    async with scene.reading():
        await cancel(scene, slot_ids[0], booking_id, scene.members[0])
        await cancel(scene, slot_ids[0], other, scene.members[2])
        await scene.book(slot_ids[1], 0)
        await scene.until_entries("cancelled", "cancelled", "booked")
    await scene.send()
    texts = {str(each["To"]): text_of(scene, n) for n, each in enumerate(scene.trap.messages)}
    assert "Bring shoes." not in texts["Member 2 <2@school.test>"]
    # The place that the user keeps has the note, though the mail speaks of the other one first.
    both = texts["Member 0 <0@school.test>"]
    assert both.index("Yoga") < both.index("Judo") < both.index("Bring shoes.")


@pytest.mark.parametrize(
    ("own", "site", "subject", "page"),
    [
        (None, None, "You have a place: Yoga", "Your booking"),
        (None, "de-AT", "Du hast einen Platz: Yoga", "Die Buchung"),
        ("zh-Hant", "de", "预约成功：Yoga", "你的预约"),  # noqa: RUF001
        ("fr", "de", "Du hast einen Platz: Yoga", "Die Buchung"),
    ],
)
async def test_mails_and_calendars_are_in_the_language_of_the_site_until_a_user_chooses_one(
    scene: MailScene, own: str | None, site: str | None, subject: str, page: str
) -> None:
    services, user_id = scene.services, scene.members[0].user_id
    services.site.defaults = replace(SCHOOL, locale=site or "")
    await services.users.set_preferences(user_id, own, {})
    slot_id = await scene.insert_slot()
    async with scene.reading():
        [booking_id] = await scene.book(slot_id, 0)
        await scene.until_entries("booked")
    await scene.send()
    assert scene.trap.subjects == [subject]
    user = (await services.users.find_many([user_id]))[user_id]
    url = "https://school.test/board"
    [of_user] = await calendars.user_calendar(services, user, url)
    [of_booking] = await calendars.booking_calendar(services, slot_id, booking_id, url) or ()
    mailed = str(events_of(scene)[0][1]["DESCRIPTION"])
    assert {of_user.description, of_booking.description} == {mailed}
    assert mailed.startswith(page)


async def test_a_mail_has_the_name_and_the_words_that_the_school_set(scene: MailScene) -> None:
    own = {"name": "Park School", "mail_closing": "Fragen? 030 1234", "locale": "de"}
    changes = {**own, "form_of_address": FormOfAddress.FORMAL.value}
    await update(scene.services.site, changes, scene.organizer.user_id)
    async with scene.reading():
        await scene.book(await scene.insert_slot(), 0)
        await scene.until_entries("booked")
    await scene.send()
    assert scene.trap.subjects == ["Sie haben einen Platz: Yoga"]
    assert text_of(scene).startswith("Guten Tag Member 0,\n")
    assert text_of(scene).endswith("\n\nFragen? 030 1234\n\nPark School\n")


async def test_a_place_that_was_moved_within_the_minute_is_one_move(scene: MailScene) -> None:
    alpha, beta = [await scene.insert_slot(title=title) for title in ("Alpha", "Beta")]
    async with scene.reading():
        [booking_id] = await scene.book(alpha, 0)
        await move(scene.services, request(alpha, booking_id, scene.organizer), beta)
        await scene.until_entries("booked", "moved")
    await scene.send()
    assert scene.trap.subjects == ["Moved: Beta"]
    assert "Olga has moved you to another course. It was:\n\nAlpha\n" in text_of(scene)
    assert "You have a place" not in text_of(scene)
    [(method, event)] = events_of(scene)
    assert (method, str(event["SUMMARY"])) == ("REQUEST", "Beta")
    assert {each.state for each in await scene.entries()} == {OutboxState.SENT}


@pytest.mark.parametrize("is_guarded", [True, False])
async def test_a_mail_that_was_greylisted_says_nothing_after_a_later_one_has_left(
    scene: MailScene, monkeypatch: pytest.MonkeyPatch, is_guarded: bool
) -> None:
    """If the newest entry of a booking were its first, the place would be named: the control."""
    slot_id = await scene.insert_slot(title="Alpha")
    async with scene.reading():
        [booking_id] = await scene.book(slot_id, 0)
        await scene.until_entries("booked")
        scene.trap.respond_to_recipient = lambda _: "451 greylisted"
        await scene.send()
        scene.trap.respond_to_recipient = lambda _: None
        await cancel(scene, slot_id, booking_id, scene.members[0])
        await scene.until_entries("booked", "cancelled")
    if not is_guarded:
        monkeypatch.setattr(booking_news, "newest_mail", lambda _, booking: first_mail(booking))
    await scene.send()
    await scene.send(timedelta(minutes=5))
    if not is_guarded:
        assert scene.trap.subjects == ["You have a place: Alpha"]
        return
    assert scene.trap.subjects == ["Given back: Alpha"]
    [(method, event)] = events_of(scene)
    assert (method, event["UID"]) == ("CANCEL", f"{booking_id}-1@slotlock")
    dropped, sent = (await scene.entries())[::-1]
    assert (dropped.state, dropped.note) == (OutboxState.SUPPRESSED, OVERTAKEN)
    assert sent.state is OutboxState.SENT


async def test_who_cancelled_reads_so_though_the_slot_was_cancelled_afterwards(
    scene: MailScene,
) -> None:
    slot_id = await scene.insert_slot(title="Alpha")
    own, _ = await scene.book(slot_id, 0, 1)
    scene.clock.advance(timedelta(hours=1))
    async with scene.reading():
        await cancel(scene, slot_id, own, scene.members[0])
        await editing.cancel(scene.services, slot_id, scene.organizer.user_id)
        await scene.until_entries("cancelled", "cancelled")
    await scene.send()
    texts = {str(each["To"]): text_of(scene, n) for n, each in enumerate(scene.trap.messages)}
    assert "You have given your place back." in texts["Member 0 <0@school.test>"]
    assert "Olga has canceled the course for everyone." in texts["Member 1 <1@school.test>"]
    assert [events_of(scene, n)[0][0] for n in range(2)] == ["CANCEL", "CANCEL"]


async def test_a_place_that_was_cancelled_and_booked_again_is_a_place(scene: MailScene) -> None:
    slot_id = await scene.insert_slot(title="Alpha")
    [booking_id] = await scene.book(slot_id, 0)
    scene.clock.advance(timedelta(hours=1))
    async with scene.reading():
        await cancel(scene, slot_id, booking_id, scene.members[0])
        [again] = await scene.book(slot_id, 0)
        await scene.until_entries("cancelled", "booked")
        await scene.send()
        assert scene.trap.subjects == ["You have a place: Alpha"]
        found = [(method, str(event["UID"])) for method, event in events_of(scene)]
        assert found == [
            ("REQUEST", f"{again}-1@slotlock"),
            ("CANCEL", f"{booking_id}-1@slotlock"),
        ]
        # Booked and cancelled within the minute, and booked again: of the first, nobody knew.
        for _ in range(2):
            await cancel(scene, slot_id, again, scene.members[0])
            [again] = await scene.book(slot_id, 0)
        await scene.until_entries(*["cancelled", "booked"] * 3)
        await scene.send()
    assert scene.trap.subjects == ["You have a place: Alpha"] * 2
    assert [method for method, _ in events_of(scene, 1)] == ["REQUEST", "CANCEL"]


async def test_what_a_greylisted_mail_would_have_removed_is_removed_by_the_next(
    scene: MailScene,
) -> None:
    alpha, beta, gamma = [
        await scene.insert_slot(title=each) for each in ("Alpha", "Beta", "Gamma")
    ]
    async with scene.reading():
        [booking_id, other] = await scene.book(alpha, 0, 1)
        await scene.until_entries("booked", "booked")
        await scene.send()
        scene.trap.respond_to_recipient = lambda _: "451 greylisted"
        moved = await move(scene.services, request(alpha, booking_id, scene.members[0]), beta)
        assert isinstance(moved.outcome, BookingMoved)
        await cancel(scene, alpha, other, scene.members[1])
        await scene.until_entries(*["booked"] * 2, "moved", "cancelled")
        await scene.send()
        scene.trap.respond_to_recipient = lambda _: None
        again = request(beta, moved.outcome.booking.id, scene.members[0])
        await move(scene.services, again, gamma)
        [instead] = await scene.book(alpha, 1)
        await scene.until_entries(*["booked"] * 3, *["moved"] * 2, "cancelled")
    await scene.send()
    await scene.send(timedelta(minutes=5))
    number = scene.trap.subjects.index("Swapped: Gamma")
    assert "It was:\n\nAlpha\n" in text_of(scene, number)
    removed = {str(each["UID"]) for method, each in events_of(scene, number) if method == "CANCEL"}
    assert f"{booking_id}-1@slotlock" in removed
    of_other = [
        (method, str(event["UID"]))
        for number, message in enumerate(scene.trap.messages)
        if message["To"] == "Member 1 <1@school.test>"
        for method, event in events_of(scene, number)
    ]
    assert ("CANCEL", f"{other}-1@slotlock") in of_other
    assert ("REQUEST", f"{instead}-1@slotlock") in of_other
    places = ["You have a place: Alpha"] * 4
    assert sorted(scene.trap.subjects) == ["Swapped: Gamma", *places]


async def test_a_hold_that_expired_or_was_extended_says_what_is_true(scene: MailScene) -> None:
    slot_ids = [await scene.insert_slot(title=title) for title in ("Alpha", "Beta")]
    async with scene.reading():
        [booking_id] = await scene.book(slot_ids[0], 0, hold=True)
        await scene.until_entries("held")
        extension = request(slot_ids[0], booking_id, scene.members[0])
        scene.clock.advance(timedelta(seconds=30))
        await change_booking(scene.services, booking_changes.extend, extension)
        await scene.send()
        await scene.book(slot_ids[1], 1, hold=True)
        await scene.until_entries("held", "held")
    query = SlotQuery(slot_ids[0], scene.clock.now, booking_ids=[booking_id])
    state = await scene.services.slots.find(query)
    assert state is not None
    booking = state.booking_by_id(booking_id)
    assert booking is not None
    assert booking.held_until is not None
    deadline = f"{booking.held_until.astimezone(ZoneInfo('Europe/Berlin')):%H:%M}"
    assert f"Confirm it by Mon, January 2, 2040, {deadline}" in text_of(scene)
    # It expires before the sweeper has written so: the mail comes with the entry of that.
    await scene.send(timedelta(days=1) - timedelta(minutes=5))
    assert len(scene.trap.mails) == 1


@pytest.mark.parametrize(
    ("edit", "expected"),
    [
        ({"several_resources": ("Room 1", "Kim")}, "Teacher changed: Yoga"),
        ({"several_resources": ("Room 2", "Berg")}, "Location changed: Yoga"),
        ({"several_resources": ("Room 2", "Kim")}, "Location and teacher changed: Yoga"),
        ({"start": 1, "several_resources": ("Room 1",)}, "Time and teacher changed: Yoga"),
    ],
)
async def test_a_mail_about_an_edit_names_what_changed_the_time_the_place_or_who_leads(
    scene: MailScene, edit: dict[str, Any], expected: str
) -> None:
    for name, kind in (("Berg", "STAFF"), ("Kim", "STAFF"), ("Room 1", "ROOM"), ("Room 2", "ROOM")):
        await scene.services.resources.insert(Resource(name, ResourceKind[kind]))
    slot_id = await scene.insert_slot(several_resources=("Room 1", "Berg"))
    await scene.book(slot_id, 0)
    scene.clock.advance(timedelta(hours=1))
    later = {"start": scene.clock.now + timedelta(hours=23, minutes=30)} if "start" in edit else {}
    patch = build_patch(**edit | later)
    async with scene.reading():
        await editing.edit(scene.services, slot_id, patch, scene.organizer.user_id)
        await scene.until_entries("edited")
        await scene.send()
    assert scene.trap.subjects == [expected]
    what = expected.removesuffix(" changed: Yoga")
    before, after = text_of(scene).split("It is now:")
    assert f"Changed: {what.lower()}. It was:" in before
    assert "Room 1, Berg\n" in before
    assert f"{', '.join(edit['several_resources'])}\n" in after
    [(method, event)] = events_of(scene)
    assert (method, event["SEQUENCE"]) == ("REQUEST", 1)


async def test_an_edit_that_was_undone_or_edited_again_is_one_mail_at_most(
    scene: MailScene,
) -> None:
    slot_id = await scene.insert_slot(title="Alpha", location="Halle 1")
    await scene.book(slot_id, 0)
    scene.clock.advance(timedelta(hours=1))

    async def edit(*places: str) -> None:
        for location in places:
            scene.clock.advance(timedelta(seconds=1))
            patch = build_patch(location=location)
            await editing.edit(scene.services, slot_id, patch, scene.organizer.user_id)

    async with scene.reading():
        await edit("Halle 2", "Halle 1")
        await scene.until_entries("edited", "edited")
        await scene.send()
        assert [each.note for each in await scene.entries()] == [OVERTAKEN] * 2
        await edit("Halle 3")
        await scene.until_entries(*["edited"] * 3)
        scene.trap.respond_to_recipient = lambda _: "451 greylisted"
        await scene.send()
        scene.trap.respond_to_recipient = lambda _: None
        await edit("Halle 4")
        await scene.until_entries(*["edited"] * 4)
    await scene.send()
    await scene.send(timedelta(minutes=5))
    assert scene.trap.subjects == ["Location changed: Alpha"]
    assert text_of(scene).index("Halle 3") < text_of(scene).index("Halle 4")


async def test_an_edit_that_was_greylisted_is_a_mail_though_later_ones_were_undone(
    scene: MailScene,
) -> None:
    slot_id = await scene.insert_slot(title="Alpha", location="Halle 1")
    await scene.book(slot_id, 0)
    scene.clock.advance(timedelta(hours=1))

    async def edit(location: str) -> None:
        scene.clock.advance(timedelta(seconds=1))
        patch = build_patch(location=location)
        await editing.edit(scene.services, slot_id, patch, scene.organizer.user_id)

    async with scene.reading():
        await edit("Halle 2")
        await scene.until_entries("edited")
        scene.trap.respond_to_recipient = lambda _: "451 greylisted"
        await scene.send()
        scene.trap.respond_to_recipient = lambda _: None
        await edit("Halle 3")
        await edit("Halle 2")
        await scene.until_entries(*["edited"] * 3)
    await scene.send()
    assert scene.trap.subjects == ["Location changed: Alpha"]
    assert text_of(scene).index("Halle 1") < text_of(scene).index("Halle 2")


async def test_what_a_greylisted_edit_would_have_removed_is_removed_by_any_later_mail(
    scene: MailScene,
) -> None:
    """The second meetings of a day are an event of their own, which the edit removes."""
    first = Meeting(
        scene.clock.now + timedelta(days=1), scene.clock.now + timedelta(days=1, hours=1)
    )
    second = Meeting(first.end, first.end + timedelta(hours=1))
    slot_id = await scene.insert_slot(start=first.start, end=second.end, meetings=(first, second))
    other_id = await scene.insert_slot(title="Other")
    day, organizer = first.start.date(), scene.organizer
    async with scene.reading():
        bookings = await scene.book(slot_id, 0, 1, 2)
        await scene.until_entries(*["booked"] * 3)
        await scene.send()
        scene.trap.respond_to_recipient = lambda _: "451 greylisted"
        one_meeting = build_patch(timetable=Timetable(day, day, extra=(first,)))
        await editing.edit(scene.services, slot_id, one_meeting, organizer.user_id)
        await scene.until_entries(*["booked", "edited"] * 3)
        await scene.send()
        scene.trap.respond_to_recipient = lambda _: None
        await cancel(scene, slot_id, bookings[0], scene.members[0])
        await move(scene.services, request(slot_id, bookings[1], organizer), other_id)
        scene.clock.advance(timedelta(seconds=1))
        edit = build_patch(location="Halle 2")
        await editing.edit(scene.services, slot_id, edit, organizer.user_id)
        await scene.until_entries(*["booked", "edited"] * 3, "cancelled", "moved", "edited")
    await scene.send()
    await scene.send(timedelta(minutes=5))
    removed = {
        str(event["UID"])
        for number in range(3, len(scene.trap.mails))
        for method, event in events_of(scene, number)
        if method == "CANCEL"
    }
    gone = {f"{each}-2@slotlock" for each in bookings}
    assert removed == gone | {f"{each}-1@slotlock" for each in bookings[:2]}
    assert len(scene.trap.mails) == 6


@pytest.mark.parametrize("has_place_since", [False, True])
async def test_who_waited_long_in_the_queue_for_a_refusal_gets_one_mail_unless_there_is_a_place_now(
    scene: MailScene, has_place_since: bool
) -> None:
    slot_id = await scene.insert_slot(capacity=1)
    [booking_id] = await scene.book(slot_id, 0)
    scene.services.sends_mail = True
    entries = []
    for member, waited in ((0, 120), (1, 120), (2, 10)):
        user_id = scene.members[member].user_id
        key = IdempotencyKey.for_request(user_id, "k", slot_id)
        hashes = (key.key_hash, key.short_request_hash)
        booking = QueuedBooking(slot_id, user_id, user_id, False, *hashes)
        requested_at = scene.clock.now - timedelta(seconds=waited)
        entries.append(StreamEntry(f"{member}-0", {}, booking, requested_at))
    for _ in range(2):  # the worker stopped before it removed the requests from the queue
        assert await serve_batch(scene.services, slot_id, entries) == entries
    if has_place_since:
        await cancel(scene, slot_id, booking_id, scene.members[0])
        await scene.book(slot_id, 1)
    await scene.send(timedelta())
    if has_place_since:
        assert scene.trap.subjects == []
        assert [each.note for each in await scene.entries()] == [OVERTAKEN]
        return
    [message] = scene.trap.messages
    assert message["To"] == "Member 1 <1@school.test>"
    assert message["Subject"] == "No place for you: Yoga"
    assert "All places are taken.\n\nYoga\n" in text_of(scene)


async def cancel(scene: MailScene, slot_id: SlotId, booking_id: BookingId, caller: Caller) -> None:
    """Cancel a booking."""
    changes = request(slot_id, booking_id, caller)
    await change_booking(scene.services, booking_changes.cancel, changes)


def request(slot_id: SlotId, booking_id: BookingId, caller: Caller) -> BookingChangeRequest:
    """Return the request of a caller to change a booking."""
    return BookingChangeRequest(slot_id, booking_id, caller)


def text_of(scene: MailScene, number: int = 0, kind: str = "plain") -> str:
    """Return the text of a mail."""
    body = scene.trap.messages[number].get_body([kind])
    assert body is not None
    return str(body.get_content()).replace("\r\n", "\n")


def events_of(scene: MailScene, number: int = 0) -> list[tuple[str, Any]]:
    """Return the methods and events of the calendars of a mail, each of which has one event.

    Each is a body of the mail, and an attachment.
    """
    message = scene.trap.messages[number]
    attached = [part.get_content() for part in message.iter_attachments()]
    bodies = [part for part in message.walk() if part.get_content_type() == "text/calendar"]
    inline = [part for part in bodies if part.get_content_disposition() is None]
    assert [part.get_content() for part in inline] == attached
    found = []
    for part in inline:
        calendar = Calendar.from_ical(part.get_content())
        [event] = calendar.walk("VEVENT")
        assert part.get_param("method") == calendar["METHOD"]
        found.append((str(calendar["METHOD"]), event))
    assert len({str(event["UID"]) for _, event in found}) == len(found)
    return found
