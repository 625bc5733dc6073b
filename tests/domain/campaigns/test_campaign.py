"""Creating and editing a campaign: normalization, versions and problems."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from slotlock.domain.campaigns.campaign import (
    Campaign,
    CampaignChanges,
    CampaignDraft,
    CampaignSaved,
    create_campaign,
    edit_campaign,
)
from slotlock.domain.campaigns.terms import CampaignId, GroupLimit
from slotlock.domain.shared.validation import InvalidInput
from tests.support.domain.builders import INSTANT

OPENS_AT = datetime(2030, 5, 1, 8, tzinfo=UTC)
NOW = OPENS_AT - timedelta(days=1)
CAMPAIGN_ID = CampaignId("c")
DRAFT = CampaignDraft(
    " Spring ",
    OPENS_AT,
    OPENS_AT + timedelta(days=7),
    eligible_groups=(("5b", " 5a "),),
    max_bookings=2,
    group_limits=(GroupLimit(" class:* ", 5),),
)


def created() -> Campaign:
    outcome = create_campaign(CAMPAIGN_ID, DRAFT, NOW)
    assert isinstance(outcome, CampaignSaved)
    return outcome.campaign


def edited(changes: CampaignChanges) -> Campaign:
    outcome = edit_campaign(created(), changes, NOW)
    assert isinstance(outcome, CampaignSaved)
    return outcome.campaign


def test_a_new_campaign_has_normalized_names_and_version_1() -> None:
    campaign = created()
    assert (campaign.id, campaign.name) == (CAMPAIGN_ID, "Spring")
    assert campaign.terms.version == 1
    assert campaign.terms.eligible_groups == (("5a", "5b"),)
    assert campaign.terms.group_limits == (GroupLimit("class:*", 5),)


def test_an_edit_replaces_only_the_given_fields() -> None:
    before = created()
    after = edited(CampaignChanges(published=True, forbid_overlap=True))
    terms = replace(before.terms, published=True, forbid_overlap=True, version=2)
    assert after == replace(before, terms=terms)


def test_an_edit_can_set_a_field_to_none() -> None:
    assert edited(CampaignChanges(max_bookings=None)).terms.max_bookings is None


@pytest.mark.parametrize(
    "changes",
    [
        CampaignChanges(),
        CampaignChanges(name="Spring ", max_bookings=2),
        CampaignChanges(eligible_groups=(("5a", "5b", "5a"),)),
    ],
)
def test_an_edit_without_effect_does_not_change_the_version(changes: CampaignChanges) -> None:
    assert edited(changes) == created()


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        (CampaignChanges(name=" "), "name"),
        (CampaignChanges(name="x" * 201), "name"),
        (CampaignChanges(closes_at=OPENS_AT), "closesAt"),
        (CampaignChanges(max_bookings=0), "maxBookings"),
        (CampaignChanges(max_bookings=1001), "maxBookings"),
        (CampaignChanges(eligible_groups=((),)), "eligibleGroups"),
        (CampaignChanges(eligible_groups=(("5a",),) * 11), "eligibleGroups"),
        (CampaignChanges(eligible_groups=(("a,b",),)), "eligibleGroups"),
        (CampaignChanges(group_limits=(GroupLimit("5a", 0),)), "groupLimits"),
        (CampaignChanges(group_limits=(GroupLimit("5a", 1), GroupLimit("5a", 2))), "groupLimits"),
    ],
)
def test_an_invalid_edit_names_the_field(changes: CampaignChanges, field: str) -> None:
    outcome = edit_campaign(created(), changes, NOW)
    assert isinstance(outcome, InvalidInput)
    assert [problem.field for problem in outcome.problems] == [field]


def problem_fields(outcome: CampaignSaved | InvalidInput) -> list[str]:
    """Return the fields of the problems; none if the campaign is saved."""
    if isinstance(outcome, CampaignSaved):
        return []
    return [problem.field for problem in outcome.problems]


def test_a_new_campaign_closes_in_the_future_unless_the_past_is_allowed() -> None:
    closes_at = DRAFT.closes_at
    for now, fields in ((closes_at - INSTANT, []), (closes_at, ["closesAt"])):
        assert problem_fields(create_campaign(CAMPAIGN_ID, DRAFT, now)) == fields
    past = replace(DRAFT, allow_past=True)
    assert problem_fields(create_campaign(CAMPAIGN_ID, past, closes_at)) == []


@pytest.mark.parametrize(
    ("changes", "fields"),
    [
        (CampaignChanges(closes_at=OPENS_AT + INSTANT), ["closesAt"]),
        (CampaignChanges(closes_at=OPENS_AT + INSTANT, allow_past=True), []),
        (CampaignChanges(closes_at=DRAFT.closes_at), []),
        (CampaignChanges(name="Winter"), []),
    ],
)
def test_only_a_new_closing_time_has_to_be_in_the_future(
    changes: CampaignChanges, fields: list[str]
) -> None:
    later = DRAFT.closes_at + timedelta(days=1)
    assert problem_fields(edit_campaign(created(), changes, later)) == fields
