"""Campaigns: slots with common terms, and the rules for creating and editing campaigns."""

from collections.abc import Iterator
from dataclasses import field, replace
from datetime import datetime

from slotlock.domain.campaigns.terms import (
    CampaignId,
    CampaignTerms,
    GroupLimit,
    NoShowLimit,
    SlotAdmission,
)
from slotlock.domain.shared.changes import UNCHANGED, Unchanged, new_or_current
from slotlock.domain.shared.text import normalize_line, validate_line, validate_text
from slotlock.domain.shared.validation import FieldProblem, InvalidInput
from slotlock.domain.shared.values import value_object
from slotlock.domain.users.groups import validate_group

MAX_CAMPAIGN_NAME_LENGTH = 200
MAX_DESCRIPTION_LENGTH = 10_000
MAX_GROUP_SETS = 10
MAX_GROUPS_PER_SET = 200
MAX_GROUP_LIMITS = 100
MAX_LIMIT_VALUE = 1000
MAX_NO_SHOW_COUNT = 100
MAX_NO_SHOW_DAYS = 366

GroupSets = tuple[tuple[str, ...], ...]


@value_object
class Campaign:
    """A campaign: its name, and the terms that each of its slots has a copy of.

    `description` is set only in a new campaign and in an edit that changes it. Nothing loads it
    with the campaign.
    """

    id: CampaignId
    name: str
    terms: CampaignTerms
    description: str | Unchanged | None = field(default=UNCHANGED, compare=False, repr=False)


@value_object
class CampaignDraft:
    """A campaign to create; the fields are those of `CampaignTerms`.

    Only with `allow_past` may it close in the past.
    """

    name: str
    opens_at: datetime
    closes_at: datetime
    published: bool = False
    eligible_groups: GroupSets = ()
    max_bookings: int | None = None
    forbid_overlap: bool = False
    group_limits: tuple[GroupLimit, ...] = ()
    cancel_until: datetime | None = None
    admission: SlotAdmission = SlotAdmission.ANY
    no_show_limit: NoShowLimit | None = None
    description: str | None = None
    allow_past: bool = False


@value_object
class CampaignChanges:
    """New values of a campaign's fields, which are those of `CampaignDraft`.

    Only with `allow_past` may a new closing time be in the past.
    """

    name: str | Unchanged = UNCHANGED
    opens_at: datetime | Unchanged = UNCHANGED
    closes_at: datetime | Unchanged = UNCHANGED
    published: bool | Unchanged = UNCHANGED
    eligible_groups: GroupSets | Unchanged = UNCHANGED
    max_bookings: int | Unchanged | None = UNCHANGED
    forbid_overlap: bool | Unchanged = UNCHANGED
    group_limits: tuple[GroupLimit, ...] | Unchanged = UNCHANGED
    cancel_until: datetime | Unchanged | None = UNCHANGED
    admission: SlotAdmission | Unchanged = UNCHANGED
    no_show_limit: NoShowLimit | Unchanged | None = UNCHANGED
    description: str | Unchanged | None = UNCHANGED
    allow_past: bool = False

    def apply_to(self, terms: CampaignTerms) -> CampaignTerms:
        """Return the terms with the new values and the same version."""
        return replace(
            terms,
            opens_at=new_or_current(self.opens_at, terms.opens_at),
            closes_at=new_or_current(self.closes_at, terms.closes_at),
            published=new_or_current(self.published, terms.published),
            eligible_groups=new_or_current(self.eligible_groups, terms.eligible_groups),
            max_bookings=new_or_current(self.max_bookings, terms.max_bookings),
            forbid_overlap=new_or_current(self.forbid_overlap, terms.forbid_overlap),
            group_limits=new_or_current(self.group_limits, terms.group_limits),
            cancel_until=new_or_current(self.cancel_until, terms.cancel_until),
            admission=new_or_current(self.admission, terms.admission),
            no_show_limit=new_or_current(self.no_show_limit, terms.no_show_limit),
        )


@value_object
class CampaignSaved:
    """The campaign has the requested state."""

    campaign: Campaign


@value_object
class CampaignNotFound:
    """The campaign does not exist."""

    campaign_id: CampaignId


@value_object
class CampaignBusy:
    """Concurrent changes to the campaign prevented this one; retry later."""

    retry_after_ms: int


@value_object
class CampaignDeleted:
    """The campaign was deleted."""

    campaign_id: CampaignId


@value_object
class CampaignInUse:
    """The campaign is published or has slots, and cannot be deleted."""

    published: bool
    has_slots: bool


CampaignOutcome = CampaignSaved | CampaignNotFound | CampaignBusy | InvalidInput
DeleteCampaignOutcome = CampaignDeleted | CampaignInUse | CampaignNotFound | CampaignBusy


def create_campaign(
    campaign_id: CampaignId, draft: CampaignDraft, now: datetime
) -> CampaignSaved | InvalidInput:
    """Return the new campaign, or the problems of the draft."""
    terms = CampaignTerms(
        campaign_id=campaign_id,
        version=1,
        published=draft.published,
        opens_at=draft.opens_at,
        closes_at=draft.closes_at,
        eligible_groups=draft.eligible_groups,
        max_bookings=draft.max_bookings,
        forbid_overlap=draft.forbid_overlap,
        group_limits=draft.group_limits,
        cancel_until=draft.cancel_until,
        admission=draft.admission,
        no_show_limit=draft.no_show_limit,
    )
    campaign = Campaign(
        campaign_id, normalize_line(draft.name), _normalize_terms(terms), draft.description
    )
    return _validated(campaign, *(() if draft.allow_past else _past_problems(terms, now)))


def edit_campaign(
    campaign: Campaign, changes: CampaignChanges, now: datetime
) -> CampaignSaved | InvalidInput:
    """Return the changed campaign, with a new version unless nothing changes, or the problems."""
    name = normalize_line(new_or_current(changes.name, campaign.name))
    terms = _normalize_terms(changes.apply_to(campaign.terms))
    is_unchanged = changes.description is UNCHANGED
    if is_unchanged and (name, terms) == (campaign.name, campaign.terms):
        return CampaignSaved(campaign)
    terms = replace(terms, version=terms.version + 1)
    edited = Campaign(campaign.id, name, terms, changes.description)
    if changes.allow_past or terms.closes_at == campaign.terms.closes_at:
        return _validated(edited)
    return _validated(edited, *_past_problems(terms, now))


def _normalize_terms(terms: CampaignTerms) -> CampaignTerms:
    eligible_groups = tuple(
        tuple(sorted(set(map(normalize_line, groups)))) for groups in terms.eligible_groups
    )
    return replace(
        terms,
        eligible_groups=eligible_groups,
        group_limits=normalize_group_limits(terms.group_limits),
    )


def normalize_group_limits(limits: tuple[GroupLimit, ...]) -> tuple[GroupLimit, ...]:
    """Return the limits with normalized names, sorted and without duplicates."""
    normalized = {GroupLimit(normalize_line(limit.group), limit.limit) for limit in limits}
    return tuple(sorted(normalized, key=lambda limit: (limit.group, limit.limit)))


def _past_problems(terms: CampaignTerms, now: datetime) -> tuple[FieldProblem, ...]:
    if not terms.opens_at < terms.closes_at <= now:
        return ()
    message = "The campaign would close in the past."
    return (FieldProblem("closesAt", message),)


def _validated(campaign: Campaign, *more: FieldProblem) -> CampaignSaved | InvalidInput:
    problems = (*campaign_problems(campaign), *more)
    return InvalidInput(problems) if problems else CampaignSaved(campaign)


def campaign_problems(campaign: Campaign) -> Iterator[FieldProblem]:
    """Yield the problems of a campaign, each with the field of the input."""
    terms = campaign.terms
    name_problem = validate_line(campaign.name, MAX_CAMPAIGN_NAME_LENGTH)
    if not campaign.name:
        name_problem = "Please enter a name for the campaign."
    if name_problem:
        yield FieldProblem("name", name_problem)
    if isinstance(campaign.description, str):
        problem = validate_text(campaign.description, MAX_DESCRIPTION_LENGTH)
        if problem:
            yield FieldProblem("description", problem)
    if terms.closes_at <= terms.opens_at:
        yield FieldProblem("closesAt", "The campaign must close after it opens.")
    if terms.max_bookings is not None and not 1 <= terms.max_bookings <= MAX_LIMIT_VALUE:
        message = f"The number of bookings must be from 1 to {MAX_LIMIT_VALUE}."
        yield FieldProblem("maxBookings", message)
    if problem := _validate_group_sets(terms.eligible_groups):
        yield FieldProblem("eligibleGroups", problem)
    if problem := validate_group_limits(terms.group_limits, MAX_LIMIT_VALUE):
        yield FieldProblem("groupLimits", problem)
    if terms.no_show_limit is not None:
        yield from _no_show_limit_problems(terms.no_show_limit)


def _no_show_limit_problems(limit: NoShowLimit) -> Iterator[FieldProblem]:
    if not 1 <= limit.count <= MAX_NO_SHOW_COUNT:
        problem = f"The number of no-shows must be from 1 to {MAX_NO_SHOW_COUNT}."
        yield FieldProblem("count", problem)
    if not 1 <= limit.days <= MAX_NO_SHOW_DAYS:
        problem = f"The number of days must be from 1 to {MAX_NO_SHOW_DAYS}."
        yield FieldProblem("days", problem)


def _validate_group_sets(group_sets: GroupSets) -> str | None:
    if len(group_sets) > MAX_GROUP_SETS:
        return f"A campaign can have at most {MAX_GROUP_SETS} sets of groups."
    for groups in group_sets:
        if not 1 <= len(groups) <= MAX_GROUPS_PER_SET:
            return f"A set must have 1 to {MAX_GROUPS_PER_SET} groups."
        if problem := next(filter(None, map(validate_group, groups)), None):
            return problem
    return None


def validate_group_limits(limits: tuple[GroupLimit, ...], max_limit: int) -> str | None:
    """Return the problem with limits of groups, or None."""
    if len(limits) > MAX_GROUP_LIMITS:
        return f"Please use at most {MAX_GROUP_LIMITS} limits."
    if len({limit.group for limit in limits}) < len(limits):
        return "A group can have only one limit."
    for limit in limits:
        if not 1 <= limit.limit <= max_limit:
            return f"A limit must be from 1 to {max_limit}."
        name = limit.group.removesuffix("*")
        if limit.group != "*" and (problem := validate_group(name)):
            return problem
    return None
