"""Organizers see what every kind of mail says before it is sent."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta

import pytest

from slotlock.api.endpoints.unsubscribe_endpoint import BUTTONS, HINTS, TEXTS
from slotlock.domain.campaigns.campaign import Campaign
from slotlock.domain.campaigns.terms import CampaignTerms
from slotlock.domain.notifications.mail_kinds import (
    BOOKING_KIND_NAMES,
    INVITATION,
    MAIL_KINDS,
    TEST,
    WEBHOOK_DISABLED,
)
from slotlock.domain.schedule.schedule_texts import SCHEDULE_WORDS
from slotlock.domain.site.site import FormOfAddress
from slotlock.infrastructure.mail.mail_texts import LANGUAGES, TEMPLATES, render
from slotlock.infrastructure.mongo.ids import new_campaign_id, new_slot_id
from slotlock.services.notifications.mail_previews import EXAMPLES, preview_mails
from slotlock.services.slots.calendars import BOOKING_PAGE
from tests.support.notifications.mail_scene import SCHOOL, URL, MailScene

INFORMAL = re.compile(r"\b([Dd]u|[Dd]ich|[Dd]ir|[Dd]ein\w*|Bestätige|Nimm|Lege)\b")


@pytest.mark.parametrize("language", LANGUAGES)
async def test_every_kind_of_mail_has_a_preview_in_every_language(
    scene: MailScene, language: str
) -> None:
    organizer = await scene.services.users.find_soon(scene.organizer.user_id)
    assert organizer is not None
    previews = await preview_mails(scene.services, URL, organizer, language)
    assert previews is not None
    assert [each.kind for each in previews] == [kind.name for kind in MAIL_KINDS]
    assert len({each.content.subject for each in previews}) == len(previews)
    assert all("Olga" in each.content.text for each in previews)
    assert all(f'<html lang="{language}">' in each.content.html for each in previews)
    assert await scene.entries() == []


def test_what_belongs_to_mails_has_their_languages() -> None:
    all_texts: tuple[Mapping[str, object], ...] = (EXAMPLES, BOOKING_PAGE, TEXTS, BUTTONS, HINTS)
    for texts in all_texts:
        assert texts.keys() == {*LANGUAGES}
    assert {*LANGUAGES} <= SCHEDULE_WORDS.keys()


def test_mails_and_their_pages_say_du_as_the_board_does() -> None:
    """Only the mail to organizers about a webhook is as formal as their pages are."""
    formal = re.compile(r"\b(Sie|Ihr\w*|Ihnen)\b|您")
    texts = {path.name: path.read_text() for path in TEMPLATES.glob("*.txt")}
    pages: tuple[Mapping[str, object], ...] = (BOOKING_PAGE, TEXTS, BUTTONS, HINTS)
    assert not any(formal.search(str(each)) for each in pages)
    informal = {name: text for name, text in texts.items() if "-formal" not in name}
    found = {name for name, text in informal.items() if formal.search(text)}
    assert found == {"webhook_disabled.de.txt", "layout.zh.txt"}
    for language, to_members, to_organizers in (
        ("de", "Hallo Ada,", "Guten Tag Ada,"),
        ("zh", "Ada，你好：", "Ada，您好："),  # noqa: RUF001
    ):
        for kind, greeting in ((TEST, to_members), (WEBHOOK_DISABLED, to_organizers)):
            values = {"url": "https://example.org", "reason": "500"}
            shared = {"name": "Ada", "site_name": "School", "board_url": ""}
            assert render(language, [(kind.name, values)], **shared).text.startswith(greeting)


@pytest.mark.parametrize(
    ("language", "expected"),
    [
        ("en", ("Time changed", "Location changed", "Teacher changed", "Time and teacher changed")),
        (
            "de",
            ("Zeit geändert", "Ort geändert", "Lehrkraft geändert", "Zeit und Lehrkraft geändert"),
        ),
        ("zh", ("时间有变", "地点有变", "教师有变", "时间、教师有变")),
    ],
)
def test_a_mail_about_an_edit_says_what_changed_in_each_language(
    language: str, expected: Sequence[str]
) -> None:
    names = ("title", "old_when", "old_place", "old_link", "when", "place", "link", "note", "url")
    shared: dict[str, object] = {"name": "Ada", "site_name": "School", "board_url": "", "child": ""}
    for changed, subject in zip(
        ({"time"}, {"place"}, {"staff"}, {"staff", "time"}), expected, strict=True
    ):
        values = {**dict.fromkeys(names, "X"), "changed": changed}
        assert render(language, [("edited", values)], **shared).subject.startswith(subject)


@pytest.mark.parametrize(("site", "expected"), [("zh", "zh"), (None, "de")])
async def test_an_invitation_is_previewed_in_the_language_in_which_it_is_sent(
    scene: MailScene, site: str | None, expected: str
) -> None:
    organizer = await scene.services.users.find_soon(scene.organizer.user_id)
    assert organizer is not None
    scene.services.site.defaults = replace(SCHOOL, locale=site or "")
    previews = await preview_mails(scene.services, URL, replace(organizer, locale="de"))
    languages = {each.kind: each.content.html.split('"')[1] for each in previews or ()}
    assert languages.pop(INVITATION.name) == expected
    assert set(languages.values()) == {"de"}


async def test_a_preview_shows_the_slot_or_the_next_slot_of_the_campaign_and_its_note(
    scene: MailScene,
) -> None:
    organizer, day = await scene.services.users.find_soon(scene.organizer.user_id), timedelta(1)
    campaign_id, services = new_campaign_id(), scene.services
    assert organizer is not None
    terms = CampaignTerms(campaign_id, 1, True, scene.clock.now - day, scene.clock.now + day)
    campaign = Campaign(campaign_id, "Sports", terms, mail_note="Bring shoes.")
    await services.campaigns.insert(campaign, scene.clock.now)
    empty = await preview_mails(services, URL, organizer, campaign_id=campaign_id)
    slot_id = await scene.insert_slot(title="Judo", terms=terms)
    found = await preview_mails(services, URL, organizer, campaign_id=campaign_id)
    for previews, title in ((empty, "Chess"), (found, "Judo")):
        texts = [each.content.text for each in previews or () if each.kind in BOOKING_KIND_NAMES]
        assert len(texts) == len(BOOKING_KIND_NAMES)
        assert all(title in text for text in texts)
        noted = {each.kind for each in previews or () if "Bring shoes." in each.content.text}
        assert noted == {"booked", "promoted", "moved", "edited", "reminder"}
    assert await preview_mails(services, URL, organizer, slot_id=slot_id) == found
    assert await preview_mails(services, URL, organizer, slot_id=new_slot_id()) is None
    assert await preview_mails(services, URL, organizer, campaign_id=new_campaign_id()) is None


async def test_mails_to_members_end_with_the_sentence_of_the_school(scene: MailScene) -> None:
    organizer = await scene.services.users.find_soon(scene.organizer.user_id)
    assert organizer is not None
    sentence = "Questions? Ask <the office> & co."
    for changes in ({"mail_closing": sentence}, {}):
        previews = await preview_mails(scene.services, URL, organizer, changes=changes)
        ending = {each.kind for each in previews or () if f"\n\n{sentence}\n" in each.content.text}
        escaped = "Questions? Ask &lt;the office&gt; &amp; co."
        assert ending == {each.kind for each in previews or () if escaped in each.content.html}
        assert ending == ({each.name for each in MAIL_KINDS if changes} - {WEBHOOK_DISABLED.name})


async def test_a_formal_school_says_sie_in_each_mail_in_german_and_nothing_changes_elsewhere(
    scene: MailScene,
) -> None:
    organizer = await scene.services.users.find_soon(scene.organizer.user_id)
    assert organizer is not None
    for language in LANGUAGES:
        found = []
        for changes in ({}, {"form_of_address": FormOfAddress.FORMAL.value}):
            previews = await preview_mails(
                scene.services, URL, organizer, language, changes=changes
            )
            found.append(
                {each.kind: each.content.subject + each.content.text for each in previews or ()}
            )
        informal, formal = found
        if language != "de":
            assert formal == informal
            continue
        assert {kind: text for kind, text in formal.items() if INFORMAL.search(text)} == {}
        assert all("Guten Tag Olga," in text for text in formal.values())
        assert informal.keys() == {*formal}
        assert len([kind for kind, text in informal.items() if INFORMAL.search(text)]) > 15


def test_a_mail_in_german_has_formal_words_exactly_if_it_says_du() -> None:
    texts = {path.name: path.read_text() for path in TEMPLATES.glob("*.txt")}
    informal = {name.partition(".")[0] for name, text in texts.items() if INFORMAL.search(text)}
    assert informal == {name.partition(".")[0] for name in texts if "-formal" in name}
    for name, text in texts.items():
        if "-formal" in name:
            parts = re.compile(r"\{[{%].*?[}%]\}")
            before = parts.findall(without_words(texts[name.replace("-formal", "")]))
            assert parts.findall(without_words(text)) == before, name


def without_words(template: str) -> str:
    """Return a template without the words that its expressions choose from."""
    return re.sub(r'"[^"{}]*[a-z][^"{}]*"', '""', template)
