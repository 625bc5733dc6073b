"""No text adds a header or a part to a mail, and strangers read no words of an account."""

from collections.abc import AsyncIterator, Iterable
from dataclasses import replace
from datetime import timedelta

import pytest
from fast_mail_parser import parse_email_tree, walk

from slotlock.devserver.embedded import EmbeddedServers
from slotlock.domain.booking.booking_outcomes import Booked
from slotlock.domain.booking.rules.book import BookingRequest
from slotlock.domain.campaigns.campaign import Campaign
from slotlock.domain.campaigns.terms import CampaignTerms
from slotlock.domain.notifications.announcements import AnnouncementSent, Audience
from slotlock.domain.notifications.mail_kinds import (
    BOOKED,
    BOOKING_KIND_NAMES,
    BOOKING_KINDS,
    CAMPAIGN_OPENS,
    DIRECT_KINDS,
    DRAW_RESULT,
    MAIL_KINDS,
    REMINDER,
    TEAM_INVITATION,
    TICKET_DECIDED,
    VERIFY_EMAIL,
    booking_mail,
    direct_mail,
)
from slotlock.domain.notifications.outbox import Channel, OutboxEntry, OutboxState
from slotlock.domain.teams.team_outcomes import TeamSaved
from slotlock.domain.users.user import Caller, Role, User
from slotlock.infrastructure.mail.mail_message import build_message
from slotlock.infrastructure.mail.mail_texts import LANGUAGES
from slotlock.infrastructure.mongo.ids import new_booking_id, new_campaign_id
from slotlock.services import teams
from slotlock.services.booking.book import BookSlotCommand
from slotlock.services.commands.executor import execute
from slotlock.services.notifications.announcements import send_announcement
from slotlock.services.notifications.mail_previews import preview_mails
from slotlock.services.notifications.other_mails import LOADERS
from tests.support.notifications.mail_readers import READERS, read_in_rust
from tests.support.notifications.mail_scene import SCHOOL, SENDER, URL, MailScene, open_mail_scene

HTML_IN_BASE64 = "=?utf-8?b?QQ0KQ29udGVudC1UeXBlOnRleHQvaHRtbA0KDQo8YSBocmVmPS8vZS5leD5QYXk8L2E+?="
HOSTILE = f'Win <eve@evil.test>, "1000" {HTML_IN_BASE64} =?utf-8?q?=0D=0ABcc:_eve@evil.test?='
PLAIN = "Ada"
# A word that only users say; it is at the end of their names.
WORD = "Pirates"


@pytest.fixture
async def scene(servers: EmbeddedServers) -> AsyncIterator[MailScene]:
    async with open_mail_scene(servers) as opened:
        yield opened


async def preview_sources(scene: MailScene, text: str, language: str) -> Iterable[bytes]:
    """Return a mail of each kind, with this text wherever somebody writes one."""
    organizer = await scene.services.users.find_soon(scene.organizer.user_id)
    assert organizer is not None
    day, campaign_id = timedelta(days=1), new_campaign_id()
    terms = CampaignTerms(campaign_id, 1, True, scene.clock.now - day, scene.clock.now + day)
    campaign = Campaign(campaign_id, text, terms, mail_note=text)
    await scene.services.campaigns.insert(campaign, scene.clock.now)
    slot_id = await scene.insert_slot(title=text, location=text, terms=terms)
    scene.services.site.defaults = replace(SCHOOL, name=text)
    reader = replace(organizer, name=text)
    previews = await preview_mails(scene.services, URL, reader, language, slot_id=slot_id)
    assert previews is not None
    assert [each.kind for each in previews] == [kind.name for kind in MAIL_KINDS]
    sender = replace(SENDER, name=text, reply_to=(text, "office@school.test"))
    to = (text, "a@school.test")
    return (
        build_message(each.kind, sender, to, each.content, scene.clock.now) for each in previews
    )


@pytest.mark.parametrize("language", LANGUAGES)
async def test_no_text_changes_the_headers_and_parts_of_any_kind_of_mail(
    scene: MailScene, language: str
) -> None:
    expected = await preview_sources(scene, PLAIN, language)
    found = await preview_sources(scene, HOSTILE, language)
    for plain, hostile in zip(expected, found, strict=True):
        for read in READERS:
            before, after = read(plain), read(hostile)
            assert (after.headers, after.parts) == (before.headers, before.parts)
            assert after.mailboxes["To"] == [(HOSTILE, "a@school.test")]
            assert [to for _, to in after.mailboxes["From"]] == [SENDER.address]


async def insert_reader(scene: MailScene, *, self_registered: bool) -> Caller:
    """Insert a user with a hostile name, and a member with another, who books for them."""
    name, users = f"{HOSTILE} {WORD}", scene.services.users
    await scene.database["users"].update_one(
        {"email": "0@school.test"}, {"$set": {"name": f"Ben {WORD}"}}
    )
    user = await users.insert(
        name,
        "a@school.test",
        Role.MEMBER,
        "hash",
        scene.clock.now,
        self_registered=self_registered,
    )
    assert user is not None
    reader = Caller(user.id, Role.MEMBER, "session", scene.clock.now)
    scene.members.append(reader)
    return reader


async def insert_every_kind(
    scene: MailScene, reader: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Insert a mail of each kind to a reader, caused by another member where somebody causes it."""
    services, now, user_id = scene.services, scene.clock.now, reader.user_id
    day, campaign_id, organizer = timedelta(days=1), new_campaign_id(), scene.members[-2]
    terms = CampaignTerms(campaign_id, 1, True, now - day, now + day)
    await services.campaigns.insert(Campaign(campaign_id, "Sports", terms, mail_note="Note"), now)
    slot_id = await scene.insert_slot(terms=terms)
    teammate = scene.members[0]
    request = BookingRequest(user_id, new_booking_id(), teammate.user_id)
    booked = await execute(services, BookSlotCommand(teammate, slot_id, request), 0)
    assert isinstance(booked.outcome, Booked)
    booking, slot = booked.outcome.booking, booked.slots[slot_id].slot
    data = {"start": slot.start.isoformat(), "held_until": now.isoformat()}
    mails = [
        replace(booking_mail(kind, booking, now, "0", teammate.user_id, data), group=None)
        for kind in BOOKING_KINDS
    ]
    texts = ("token", "code", "provider", "url", "reason")
    refused_id = await scene.insert_slot()
    mails += [
        replace(
            direct_mail(kind, "a", "1", now, user_id=user_id, data=dict.fromkeys(texts, "x")),
            slot_id=refused_id if kind is TICKET_DECIDED else None,
        )
        for kind in DIRECT_KINDS
    ]
    new = direct_mail(VERIFY_EMAIL, "b", "1", now, user_id=user_id, data={"code": "x"})
    mails += [replace(new, recipient="new@school.test")]
    opening = {"campaign": campaign_id, "opens_at": terms.opens_at.isoformat()}
    mails += [
        OutboxEntry(f"{kind.name}:1", Channel.MAIL, kind.name, now, now, user_id, data=opening)
        for kind in (CAMPAIGN_OPENS, DRAW_RESULT)
    ]

    async def load_result(*_: object) -> dict[str, object]:
        return {"title": "Sports", "granted": ["Yoga"], "wish_count": 1, "number": 1, "url": ""}

    loaders = {**LOADERS, DRAW_RESULT.name: load_result}
    monkeypatch.setattr("slotlock.services.notifications.mailer.LOADERS", loaders)
    await services.outbox.insert(mails, now)
    sent = await send_announcement(
        services, organizer, Audience(slot_id, None), "Pool", "Towels", "key"
    )
    assert sent == AnnouncementSent(1)
    services.sends_mail = True
    created = await teams.create(services, f"evil.test {WORD}", teammate.user_id)
    assert isinstance(created, TeamSaved)
    await teams.invite(services, created.team.id, "a@school.test", teammate.user_id)


def all_text(source: bytes) -> str:
    """Return the source of a mail, and all that programs show of it."""
    read = read_in_rust(source)
    contents = [each.content or b"" for each in walk(parse_email_tree(source))]
    # A calendar folds its lines as headers do.
    texts = [content.decode().replace("\r\n ", "") for content in (source, *contents)]
    return "\n".join([*texts, read.subject, *map(str, read.mailboxes.values())])


@pytest.mark.parametrize(
    ("self_registered", "is_guarded", "is_read"),
    [(True, True, False), (False, True, True), (True, False, True)],
    ids=["stranger", "known", "control"],
)
async def test_no_word_of_a_user_stands_in_a_mail_to_an_address_that_nobody_verified(
    scene: MailScene,
    monkeypatch: pytest.MonkeyPatch,
    self_registered: bool,
    is_guarded: bool,
    is_read: bool,
) -> None:
    """Somebody known is greeted by name, but not at a new address that is not verified yet."""
    if not is_guarded:
        monkeypatch.setattr(User, "has_known_name", True)
    reader = await insert_reader(scene, self_registered=self_registered)
    await insert_every_kind(scene, reader, monkeypatch)
    await scene.send()
    sent = {each.kind for each in await scene.entries() if each.state is OutboxState.SENT}
    # Of those about a booking, some are no longer true when they leave.
    unsent = BOOKING_KIND_NAMES - {BOOKED.name, REMINDER.name}
    if self_registered and is_guarded:
        unsent |= {TEAM_INVITATION.name}
    assert sent >= {kind.name for kind in MAIL_KINDS} - unsent
    for mail in scene.trap.mails:
        text = all_text(mail.content)
        is_new = mail.recipients == ("new@school.test",)
        assert (WORD in text) == (is_read and not is_new), text
        assert "evil.test" not in text or is_read
    booked = [all_text(each.content) for each in scene.trap.mails if b"booked a pl" in each.content]
    assert len(booked) == is_read
    assert all(f"Ben {WORD} has booked" in each for each in booked)
