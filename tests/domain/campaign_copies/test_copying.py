"""Copying a campaign: its dates move by whole weeks of local time, and all else is carried."""

from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from typing import Any, get_args, get_type_hints
from zoneinfo import ZoneInfo

import pytest

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.slot import SeriesId, Slot, SlotStatus
from slotlock.domain.campaign_copies.campaign_copy_outcomes import (
    MAX_COPIED_MEETINGS,
    MAX_COPIED_SLOTS,
    CampaignTooLarge,
    CopyProblem,
    CopyProblemKind,
    CopyProblems,
)
from slotlock.domain.campaign_copies.copying import (
    MAX_WEEKS,
    CopyNames,
    CopyPlan,
    CopyRequest,
    CopySource,
    copied_choice_group,
    draft_problems,
    is_too_large,
    plan_copy,
    resource_problems,
)
from slotlock.domain.campaigns.campaign import Campaign
from slotlock.domain.campaigns.terms import (
    CampaignId,
    CampaignTerms,
    GroupLimit,
    NoShowLimit,
    SlotAdmission,
)
from slotlock.domain.schedule.meetings import Meeting
from slotlock.domain.shared.problems import ProblemCode
from slotlock.domain.shared.validation import InvalidInput
from tests.support.domain.builders import build_slot, with_values

BERLIN = ZoneInfo("Europe/Berlin")
NOW = datetime(2030, 1, 1, tzinfo=UTC)


def berlin(*time: int) -> datetime:
    """Return the instant of a local time in Berlin."""
    return datetime(*time, tzinfo=BERLIN).astimezone(UTC)  # type: ignore[misc, arg-type]


TERMS = CampaignTerms(
    CampaignId("old"),
    7,
    published=True,
    opens_at=berlin(2030, 3, 1, 8),
    closes_at=berlin(2030, 3, 8, 8),
    eligible_groups=(("year 5",),),
    max_bookings=2,
    forbid_overlap=True,
    group_limits=(GroupLimit("class:*", 5),),
    cancel_until=berlin(2030, 4, 1, 12),
    admission=SlotAdmission.QUEUE_ONLY,
    no_show_limit=NoShowLimit(2, 14),
)
CAMPAIGN = Campaign(CampaignId("old"), "Spring", TERMS, "# Spring", published_at=NOW)
DESCRIPTIONS = {"old 0": "Bring shoes."}


def a_slot(number: int = 0, **facts: object) -> Slot:
    """Return a slot of the campaign on a Monday morning in May 2030."""
    slot = build_slot(
        3,
        id=SlotId(f"old {number}"),
        start=berlin(2030, 5, 6, 9),
        end=berlin(2030, 5, 6, 10),
        terms=TERMS,
    ).slot
    return with_values(slot, **facts)


def names_for(*slots: Slot) -> CopyNames:
    """Return names of copies in which "old" is "new"."""
    return CopyNames(
        CampaignId("new"),
        {slot.id: SlotId(slot.id.replace("old", "new")) for slot in slots},
        {slot.series_id: SeriesId(f"new {slot.series_id}") for slot in slots if slot.series_id},
        {slot.choice_group: f"new {slot.choice_group}" for slot in slots if slot.choice_group},
    )


def copy_of(
    *slots: Slot, weeks: int = 52, now: datetime = NOW, allow_past: bool = False
) -> CopyPlan:
    """Return the plan of a copy."""
    request = CopyRequest(CAMPAIGN.id, "Spring 2031", weeks, allow_past)
    plan = plan_copy(CopySource(CAMPAIGN, slots, DESCRIPTIONS), request, names_for(*slots), now)
    assert isinstance(plan, CopyPlan), plan
    return plan


def the_copy(slot: Slot, weeks: int = 52) -> Slot:
    """Return the copy of a slot."""
    (state,) = copy_of(slot, weeks=weeks).slots
    return state.slot


def test_a_draw_is_not_copied_and_everybody_books_in_the_copy() -> None:
    for admission, copied in (
        (SlotAdmission.DRAW, SlotAdmission.ANY),
        (SlotAdmission.QUEUE_ONLY, SlotAdmission.QUEUE_ONLY),
    ):
        terms = replace(TERMS, admission=admission)
        source = CopySource(replace(CAMPAIGN, terms=terms), (), {})
        plan = plan_copy(source, CopyRequest(CAMPAIGN.id, "Next", 52), names_for(), NOW)
        assert isinstance(plan, CopyPlan)
        assert plan.campaign.terms.admission is copied


def problems_of(slot: Slot, rivals: tuple[Any, ...] = (), known: tuple[str, ...] = ()) -> list[Any]:
    """Return the kinds and other slots of the problems with the resources of a copy."""
    source = CopySource(CAMPAIGN, (slot,), {})
    found = resource_problems(source, copy_of(slot), rivals, known)
    return [(each.kind, each.source_id, each.other_id) for each in found]


def test_a_copied_slot_has_the_same_local_time_on_the_other_side_of_a_clock_change() -> None:
    copied = the_copy(a_slot(), weeks=40)  # in February
    assert (copied.start, copied.end) == (berlin(2031, 2, 10, 9), berlin(2031, 2, 10, 10))
    assert copied.start - a_slot().start == timedelta(weeks=40, hours=1)


def test_every_meeting_of_a_course_moves() -> None:
    meetings = tuple(
        Meeting(berlin(2030, month, 14, 16), berlin(2030, month, 14, 18)) for month in (2, 3, 4)
    )
    course = a_slot(meetings=meetings, start=meetings[0].start, end=meetings[-1].end)
    copied = the_copy(course, weeks=4)
    days = [(3, 14), (4, 11), (5, 12)]
    assert copied.meetings == tuple(
        Meeting(berlin(2030, *day, 16), berlin(2030, *day, 18)) for day in days
    )
    assert (copied.start, copied.end) == (copied.meetings[0].start, copied.meetings[-1].end)


def test_the_campaign_moves_in_the_zone_of_its_first_slot_and_is_not_published() -> None:
    copied = copy_of(a_slot(), weeks=8).campaign
    assert copied == Campaign(
        CampaignId("new"),
        "Spring 2031",
        replace(
            TERMS,
            campaign_id=CampaignId("new"),
            version=1,
            published=False,
            opens_at=berlin(2030, 4, 26, 8),
            closes_at=berlin(2030, 5, 3, 8),
            cancel_until=berlin(2030, 5, 27, 12),
        ),
    )
    assert copied.description == "# Spring"
    assert copy_of(weeks=8).campaign.terms.opens_at == TERMS.opens_at + timedelta(weeks=8)


def test_a_copied_slot_has_all_other_fields_of_the_original() -> None:
    changed = {"id", "start", "end", "meetings", "series_id", "choice_group", "terms"}
    changed |= {"cancellation", "revision", "revised_at"}
    original = a_slot(
        location="Hall",
        cancel_cutoff_minutes=30,
        hold_cooldown_minutes=9,
        resource="Room 1",
        several_resources=("Room 1", "Ada"),
        group_limits=(GroupLimit("5a", 1),),
        revision=4,
    )
    (state,) = copy_of(original).slots
    copied = state.slot
    for each in fields(Slot):
        if each.name not in changed:
            assert getattr(copied, each.name) == getattr(original, each.name), each.name
    assert (copied.id, copied.revision, copied.revised_at) == ("new 0", 0, NOW)
    assert state.change.description == "Bring shoes."
    assert copied.terms == copy_of(original).campaign.terms


def test_every_instant_of_a_slot_and_of_campaign_terms_is_one_that_copies_move_or_set() -> None:
    def instants(cls: type) -> set[str]:
        hints = get_type_hints(cls).items()
        return {name for name, hint in hints if datetime in (hint, *get_args(hint))}

    assert instants(Slot) == {"start", "end", "revised_at"}
    assert instants(CampaignTerms) == {"opens_at", "closes_at", "cancel_until"}
    assert instants(Campaign) == {"published_at"}


def test_series_and_choice_groups_stay_together_under_new_names() -> None:
    grouped = [a_slot(n, series_id=SeriesId("a"), choice_group="Monday") for n in (0, 1)]
    other = a_slot(2, choice_group="Tuesday")
    copies = [state.slot for state in copy_of(*grouped, other).slots]
    assert [slot.series_id for slot in copies] == ["new a", "new a", None]
    assert [slot.choice_group for slot in copies] == ["new Monday"] * 2 + ["new Tuesday"]


def test_a_choice_group_has_one_token_even_as_the_copy_of_a_copy() -> None:
    once = copied_choice_group("Monday", "0123abcd")
    assert once == "Monday [0123abcd]"
    assert copied_choice_group(once, "89abcdef") == "Monday [89abcdef]"
    assert copied_choice_group("x" * 100, "0123abcd") == "x" * 89 + " [0123abcd]"


def test_a_local_time_that_does_not_exist_moves_out_of_the_gap_and_is_reported() -> None:
    night = a_slot(start=berlin(2030, 3, 24, 2, 30), end=berlin(2030, 3, 24, 4))
    plan = copy_of(a_slot(), night, weeks=1)  # to the night of the clock change
    copied = plan.slots[1].slot
    assert copied.start == berlin(2030, 3, 31, 3, 30)
    assert copied.end - copied.start == timedelta(hours=1, minutes=30)
    assert [each.source_id for each in plan.copy.adjusted] == [night.id]
    assert plan.problems == ()


def test_meetings_that_would_overlap_after_a_clock_change_are_a_problem() -> None:
    meetings = (
        Meeting(berlin(2030, 3, 24, 2), berlin(2030, 3, 24, 3)),
        Meeting(berlin(2030, 3, 24, 3), berlin(2030, 3, 24, 4)),
    )
    night = a_slot(meetings=meetings, start=meetings[0].start, end=meetings[1].end)
    (problem,) = copy_of(night, weeks=1).problems
    assert (problem.kind, problem.source_id) == (CopyProblemKind.INVALID_TIMES, night.id)


def test_dates_in_the_past_are_problems_unless_they_are_allowed() -> None:
    late = datetime(2032, 1, 1, tzinfo=UTC)
    found = [(each.kind, each.source_id) for each in copy_of(a_slot(), now=late).problems]
    in_past = CopyProblemKind.IN_PAST
    assert found == [(in_past, None), (in_past, a_slot().id)]
    assert copy_of(a_slot(), now=late, allow_past=True).problems == ()


@pytest.mark.parametrize(
    ("request_fields", "field"),
    [
        ({"weeks": 0}, "weeks"),
        ({"weeks": MAX_WEEKS + 1}, "weeks"),
        ({"name": " "}, "name"),
        ({"name": "x" * 201}, "name"),
    ],
)
def test_an_invalid_request_is_refused(request_fields: dict[str, Any], field: str) -> None:
    request = CopyRequest(CAMPAIGN.id, **{"name": "New", "weeks": 52, **request_fields})
    refused = plan_copy(CopySource(CAMPAIGN, (), {}), request, names_for(), NOW)
    assert isinstance(refused, InvalidInput)
    assert [problem.field for problem in refused.problems] == [field]


def test_dates_that_no_calendar_has_are_refused() -> None:
    last = a_slot(start=berlin(9999, 12, 30, 9), end=berlin(9999, 12, 30, 10))
    request = CopyRequest(CAMPAIGN.id, "New", 52)
    refused = plan_copy(CopySource(CAMPAIGN, (last,), {}), request, names_for(last), NOW)
    assert isinstance(refused, InvalidInput)
    assert [problem.field for problem in refused.problems] == ["weeks"]


def test_a_resource_that_is_taken_or_gone_is_a_problem() -> None:
    slot = a_slot(resource="Room 1")
    taken, gone = CopyProblemKind.RESOURCE_TAKEN, CopyProblemKind.RESOURCE_NOT_FOUND
    rival = build_slot(
        id=SlotId("rival"),
        resource="Room 1",
        start=berlin(2031, 5, 5, 9, 59),
        end=berlin(2031, 5, 5, 11),
    )
    assert problems_of(slot, known=("Room 1",)) == []
    assert problems_of(slot) == [(gone, slot.id, None)]
    assert problems_of(slot, (rival,), ("Room 1",)) == [(taken, slot.id, "rival")]
    draft = with_values(slot, status=SlotStatus.DRAFT)
    assert problems_of(draft, (rival,), ("Room 1",)) == []


def test_copies_in_different_time_zones_can_be_in_the_way_of_each_other() -> None:
    # Moved over the end of the summer time in the one zone that has it.
    summer = a_slot(0, resource="Room 1")
    start = berlin(2030, 5, 6, 10)
    utc = a_slot(1, resource="Room 1", start=start, end=start + timedelta(hours=1), time_zone="UTC")
    source, plan = CopySource(CAMPAIGN, (summer, utc), {}), copy_of(summer, utc, weeks=30)
    found = list(resource_problems(source, plan, [], ("Room 1",)))
    assert [(each.kind, each.source_id, each.other_id) for each in found] == [
        (CopyProblemKind.RESOURCE_TAKEN, summer.id, None),
        (CopyProblemKind.RESOURCE_TAKEN, utc.id, None),
    ]


def test_drafts_of_a_copy_that_need_the_same_resource_are_named_but_can_be_copied() -> None:
    draft = a_slot(0, resource="Room 1", status=SlotStatus.DRAFT)
    other_draft = a_slot(1, resource="Room 1", status=SlotStatus.DRAFT)
    published, elsewhere = a_slot(2, resource="Room 1"), a_slot(3, resource="Room 2")
    for others, expected in (
        ((other_draft,), [draft.id, other_draft.id]),
        ((published,), [draft.id]),
        ((elsewhere,), []),
    ):
        source, plan = CopySource(CAMPAIGN, (draft, *others), {}), copy_of(draft, *others)
        assert list(resource_problems(source, plan, [], ("Room 1", "Room 2"))) == []
        assert [each.source_id for each in draft_problems(source, plan, [])] == expected


def test_a_campaign_with_too_many_slots_or_meetings_is_too_large() -> None:
    slot = a_slot()
    assert is_too_large([slot] * MAX_COPIED_SLOTS) is None
    assert is_too_large([slot] * (MAX_COPIED_SLOTS + 1)) == CampaignTooLarge()
    course = a_slot(meetings=(Meeting(slot.start, slot.end),) * 500)
    assert is_too_large([course] * (MAX_COPIED_MEETINGS // 500)) is None
    assert is_too_large([course] * (MAX_COPIED_MEETINGS // 500 + 1)) == CampaignTooLarge()


def test_an_outcome_shows_the_first_problems_and_counts_all() -> None:
    problems = [
        CopyProblem(CopyProblemKind.IN_PAST, ProblemCode.IN_PAST.problem(time=str(number)))
        for number in range(150)
    ]
    found = CopyProblems.of(problems)
    assert (len(found.problems), found.count) == (100, 150)
    assert found.problems[0] == problems[0]
