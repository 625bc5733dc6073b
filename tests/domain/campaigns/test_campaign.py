"""Creating and editing a campaign, and the pause after too many no-shows."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from slotlock.domain.booking.booking import BookingAction, BookingStatus, HistoryEntry, SlotId
from slotlock.domain.booking.booking_outcomes import Booked
from slotlock.domain.booking.booking_refusals import TooManyNoShows
from slotlock.domain.booking.rules.book import book
from slotlock.domain.booking.user_contexts import OtherBooking, UserContext, UserContexts
from slotlock.domain.campaigns.campaign import (
    Campaign,
    CampaignDraft,
    CampaignPatch,
    CampaignSaved,
    create_campaign,
    edit_campaign,
)
from slotlock.domain.campaigns.terms import CampaignId, GroupLimit, NoShowLimit, SlotAdmission
from slotlock.domain.shared.problems import ProblemCode
from slotlock.domain.shared.validation import FieldProblem, InvalidInput
from slotlock.domain.users.user import UserId
from tests.support.domain.builders import INSTANT, NOW, book_place, booking_request, with_facts
from tests.support.domain.campaign_builders import (
    build_campaign_slot,
    build_terms,
    contexts,
    refusal_of,
)
from tests.support.domain.decisions import decide

OPENS_AT = datetime(2030, 5, 1, 8, tzinfo=UTC)
DAY_BEFORE = OPENS_AT - timedelta(days=1)
CAMPAIGN_ID = CampaignId("c")
DRAFT = CampaignDraft(
    " Spring ",
    OPENS_AT,
    OPENS_AT + timedelta(days=7),
    eligible_groups=(("5e\u0301", " 5a "),),
    max_bookings=2,
    group_limits=(GroupLimit(" classe\u0301:* ", 5),),
)
DAY = timedelta(days=1)
LIMIT = NoShowLimit(count=2, days=7)


def created() -> Campaign:
    outcome = create_campaign(CAMPAIGN_ID, DRAFT, DAY_BEFORE)
    assert isinstance(outcome, CampaignSaved)
    return outcome.campaign


def edited(changes: CampaignPatch) -> Campaign:
    outcome = edit_campaign(created(), changes, DAY_BEFORE)
    assert isinstance(outcome, CampaignSaved)
    return outcome.campaign


def test_a_new_campaign_has_normalized_names_and_version_1() -> None:
    campaign = created()
    assert (campaign.id, campaign.name) == (CAMPAIGN_ID, "Spring")
    assert campaign.terms.version == 1
    assert campaign.terms.eligible_groups == (("5a", "5\u00e9"),)
    assert campaign.terms.group_limits == (GroupLimit("class\u00e9:*", 5),)


def test_an_edit_replaces_only_the_given_fields() -> None:
    before = created()
    after = edited(CampaignPatch(published=True, forbid_overlap=True))
    terms = replace(before.terms, published=True, forbid_overlap=True, version=2)
    assert after == replace(before, terms=terms, published_at=DAY_BEFORE)


def test_an_edit_can_set_a_field_to_none() -> None:
    assert edited(CampaignPatch(max_bookings=None)).terms.max_bookings is None


@pytest.mark.parametrize(
    "changes",
    [
        CampaignPatch(),
        CampaignPatch(name="Spring ", max_bookings=2),
        CampaignPatch(eligible_groups=(("5a", "5\u00e9", "5a"),)),
    ],
)
def test_an_edit_without_effect_does_not_change_the_version(changes: CampaignPatch) -> None:
    assert edited(changes) == created()


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        (CampaignPatch(name=" "), "name"),
        (CampaignPatch(name="x" * 201), "name"),
        (CampaignPatch(closes_at=OPENS_AT), "closesAt"),
        (CampaignPatch(max_bookings=0), "maxBookings"),
        (CampaignPatch(max_bookings=1001), "maxBookings"),
        (CampaignPatch(eligible_groups=((),)), "eligibleGroups"),
        (CampaignPatch(eligible_groups=(("5a",),) * 11), "eligibleGroups"),
        (CampaignPatch(eligible_groups=(("a,b",),)), "eligibleGroups"),
        (CampaignPatch(group_limits=(GroupLimit("5a", 0),)), "groupLimits"),
        (CampaignPatch(group_limits=(GroupLimit("5a", 1), GroupLimit("5a", 2))), "groupLimits"),
    ],
)
def test_an_invalid_edit_names_the_field(changes: CampaignPatch, field: str) -> None:
    outcome = edit_campaign(created(), changes, DAY_BEFORE)
    assert isinstance(outcome, InvalidInput)
    assert [problem.field for problem in outcome.problems] == [field]


def problem_fields(outcome: CampaignSaved | InvalidInput) -> list[str]:
    """Return the fields of the problems; none if the campaign is saved."""
    if isinstance(outcome, CampaignSaved):
        return []
    return [problem.field for problem in outcome.problems]


def test_only_a_draw_lets_the_admission_begin_or_end_to_be_by_lot() -> None:
    owned = [FieldProblem("admission", ProblemCode.DRAW_OWNS_ADMISSION.problem())]
    by_lot = CampaignPatch(admission=SlotAdmission.DRAW)
    of_draw = replace(by_lot, of_draw=True)
    in_draw = edited(of_draw)
    assert in_draw.terms.admission is SlotAdmission.DRAW
    back = CampaignPatch(admission=SlotAdmission.ANY)
    refused = (
        create_campaign(CAMPAIGN_ID, replace(DRAFT, admission=SlotAdmission.DRAW), DAY_BEFORE),
        edit_campaign(created(), by_lot, DAY_BEFORE),
        edit_campaign(in_draw, back, DAY_BEFORE),
    )
    for each in refused:
        assert isinstance(each, InvalidInput)
        assert list(each.problems) == owned
    for changes in (by_lot, CampaignPatch(name="Other"), replace(back, of_draw=True)):
        assert isinstance(edit_campaign(in_draw, changes, DAY_BEFORE), CampaignSaved)


def test_a_new_campaign_closes_in_the_future_unless_the_past_is_allowed() -> None:
    closes_at = DRAFT.closes_at
    for now, fields in ((closes_at - INSTANT, []), (closes_at, ["closesAt"])):
        assert problem_fields(create_campaign(CAMPAIGN_ID, DRAFT, now)) == fields
    past = replace(DRAFT, allow_past=True)
    assert problem_fields(create_campaign(CAMPAIGN_ID, past, closes_at)) == []


@pytest.mark.parametrize(
    ("changes", "fields"),
    [
        (CampaignPatch(closes_at=OPENS_AT + INSTANT), ["closesAt"]),
        (CampaignPatch(closes_at=OPENS_AT + INSTANT, allow_past=True), []),
        (CampaignPatch(closes_at=DRAFT.closes_at), []),
        (CampaignPatch(name="Winter"), []),
    ],
)
def test_only_a_new_closing_time_is_checked(changes: CampaignPatch, fields: list[str]) -> None:
    later = DRAFT.closes_at + timedelta(days=1)
    assert problem_fields(edit_campaign(created(), changes, later)) == fields


def missed_days_ago(*days: int, **terms: object) -> UserContexts:
    """Return Ada with a no-show marked so many days before `NOW` in each of other slots."""
    others = []
    for number, day in enumerate(days):
        slot = build_campaign_slot(5, **terms)
        state, booking = book_place(
            with_facts(slot, id=SlotId(f"missed{number}")), booking_request("ada")
        )
        marked = HistoryEntry(
            NOW - day * DAY, UserId("olga"), BookingAction.NO_SHOW, BookingStatus.CONFIRMED
        )
        others.append(OtherBooking(booking.with_entry(marked), state.slot))
    return contexts(UserContext(UserId("ada"), (), 1, tuple(others)))


def test_the_pause_ends_some_days_after_the_latest_no_show() -> None:
    slot = build_campaign_slot(no_show_limit=LIMIT)
    users = missed_days_ago(6, 30, 7, no_show_limit=LIMIT)
    assert refusal_of(slot, "ada", users=users) == TooManyNoShows(slot.id, 3, NOW + DAY)


def test_the_pause_is_over_at_its_end() -> None:
    closes_at = NOW + 30 * DAY
    slot = with_facts(
        build_campaign_slot(no_show_limit=LIMIT, closes_at=closes_at), start=closes_at
    )
    users = missed_days_ago(6, 6, no_show_limit=LIMIT)
    until = NOW + DAY
    assert isinstance(refusal_of(slot, "ada", until - INSTANT, users), TooManyNoShows)
    _, outcome = decide(book, slot, booking_request("ada"), until, users=users)
    assert isinstance(outcome, Booked)


def test_fewer_no_shows_and_those_of_other_campaigns_have_no_consequence() -> None:
    slot = build_campaign_slot(no_show_limit=LIMIT)
    elsewhere = missed_days_ago(1, 1, no_show_limit=LIMIT, campaign_id=CampaignId("other"))
    for users in (missed_days_ago(1, no_show_limit=LIMIT), elsewhere):
        _, outcome = decide(book, slot, booking_request("ada"), NOW, users=users)
        assert isinstance(outcome, Booked)


def test_a_limit_that_is_set_later_counts_no_shows_marked_before() -> None:
    slot, users = build_campaign_slot(no_show_limit=LIMIT), missed_days_ago(1, 1)
    assert isinstance(refusal_of(slot, "ada", users=users), TooManyNoShows)
    free = build_campaign_slot()
    assert isinstance(decide(book, free, booking_request("ada"), NOW, users=users)[1], Booked)


def test_only_campaigns_with_the_limit_depend_on_other_bookings() -> None:
    assert build_terms(no_show_limit=LIMIT).depends_on_other_bookings
    assert not build_terms().depends_on_other_bookings
