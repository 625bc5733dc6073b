"""Campaigns: slots with common terms, and the rules for creating and editing campaigns."""

from collections.abc import Iterator
from dataclasses import field, fields, replace
from datetime import datetime

from slotlock.domain.campaigns.terms import (
    MAX_REMINDER_MINUTES,
    CampaignId,
    CampaignTerms,
    GroupLimit,
    NoShowLimit,
    SlotAdmission,
)
from slotlock.domain.shared.declare import RETRY_AFTER_MS, SENT_ID, outcome, refusal, shown
from slotlock.domain.shared.facts import Number
from slotlock.domain.shared.problems import Problem, ProblemCode
from slotlock.domain.shared.text import (
    format_in_zone,
    normalize_line,
    strip_blanks,
    validate_line,
    validate_text,
)
from slotlock.domain.shared.unchanged import UNCHANGED, Unchanged, new_or_current
from slotlock.domain.shared.validation import FieldProblem, InvalidInput
from slotlock.domain.shared.value_object import value_object
from slotlock.domain.users.groups import clean_groups, validate_group, validate_pattern

MAX_CAMPAIGN_NAME_LENGTH = 200
MAX_DESCRIPTION_LENGTH = 10_000
MAX_MAIL_NOTE_LENGTH = 1000
MAX_GROUP_SETS = 10
MAX_GROUPS_PER_SET = 200
MAX_GROUP_LIMITS = 100
MAX_LIMIT_VALUE = 1000
MAX_NO_SHOW_COUNT = 100
MAX_NO_SHOW_DAYS = 366
MAX_OPENING_MAIL_HOURS = 14 * 24

GroupSets = tuple[tuple[str, ...], ...]


@value_object
class Campaign:
    """A campaign: its name, and the terms that each of its slots has a copy of.

    `description` is set only in a new campaign, and in an edit that gives it and what was before.
    Nothing else loads it. `mail_note` stands in each mail about a place that its user keeps.
    `published_at` is None while it is hidden.
    """

    id: CampaignId
    name: str
    terms: CampaignTerms
    description: str | Unchanged | None = field(default=UNCHANGED, compare=False, repr=False)
    mail_note: str | None = None
    published_at: datetime | None = None


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
    require_verified_email: bool = False
    reminder_minutes: int | None = None
    opening_mail_hours: int | None = None
    leader_groups: tuple[str, ...] = ()
    description: str | None = None
    mail_note: str | None = None
    allow_past: bool = False


@value_object
class CampaignPatch:
    """New values of a campaign's fields, which are those of `CampaignDraft`.

    Only with `allow_past` may a new closing time be in the past. Only a draw (`of_draw`) lets the
    admission begin or end to be DRAW.
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
    require_verified_email: bool | Unchanged = UNCHANGED
    reminder_minutes: int | Unchanged | None = UNCHANGED
    opening_mail_hours: int | Unchanged | None = UNCHANGED
    leader_groups: tuple[str, ...] | Unchanged = UNCHANGED
    description: str | Unchanged | None = UNCHANGED
    mail_note: str | Unchanged | None = UNCHANGED
    allow_past: bool = False
    of_draw: bool = False

    def apply_to(self, terms: CampaignTerms) -> CampaignTerms:
        """Return the terms with the new values and the same version."""
        new = {name: new_or_current(getattr(self, name), getattr(terms, name)) for name in TERMS}
        return replace(terms, **new)


# The fields of `CampaignTerms` that organizers set: all but the id, the version and `stored`.
TERMS = [each.name for each in fields(CampaignTerms) if hasattr(CampaignPatch, each.name)]


@value_object
class CampaignSaved:
    """The campaign has the requested state."""

    campaign: Campaign


@refusal(message="This campaign does not exist.")
class CampaignNotFound:
    """The campaign does not exist, or the caller may not see it."""

    campaign_id: CampaignId = shown(SENT_ID)


@refusal(message="Others are changing this campaign right now. Please try again.")
class CampaignBusy:
    """Too many requests are changing the campaign at once."""

    retry_after_ms: int = shown(RETRY_AFTER_MS)


@outcome
class CampaignDeleted:
    """The campaign was deleted."""

    campaign_id: CampaignId = shown("The id of the deleted campaign.")


@refusal(message="This campaign is published or has slots.")
class CampaignInUse:
    """The campaign is published or has slots, so it cannot be deleted.

    It can be unpublished, and slots without bookings can be deleted.
    """

    published: bool = shown("Whether the campaign is published.")
    has_slots: bool = shown("Whether the campaign has slots.")


CampaignOutcome = CampaignSaved | InvalidInput | CampaignNotFound | CampaignBusy
DeleteCampaignOutcome = CampaignDeleted | CampaignNotFound | CampaignInUse | CampaignBusy


DRAW_OWNS_ADMISSION = InvalidInput(
    (FieldProblem("admission", ProblemCode.DRAW_OWNS_ADMISSION.problem()),)
)


def create_campaign(
    campaign_id: CampaignId, draft: CampaignDraft, now: datetime
) -> CampaignSaved | InvalidInput:
    """Return the new campaign, or the problems of the draft."""
    terms = CampaignTerms(
        campaign_id=campaign_id, version=1, **{name: getattr(draft, name) for name in TERMS}
    )
    campaign = Campaign(
        campaign_id,
        normalize_line(draft.name),
        _normalize_terms(terms),
        draft.description,
        _normalize_lines(draft.mail_note),
        now if draft.published else None,
    )
    if terms.admission is SlotAdmission.DRAW:
        return DRAW_OWNS_ADMISSION
    past_end = None if draft.allow_past else past_end_problem(terms, now)
    return _validated(campaign, past_end)


def edit_campaign(
    campaign: Campaign, changes: CampaignPatch, now: datetime
) -> CampaignSaved | InvalidInput:
    """Return the changed campaign, with a new version unless nothing changes, or the problems."""
    name = normalize_line(new_or_current(changes.name, campaign.name))
    terms = _normalize_terms(changes.apply_to(campaign.terms))
    mail_note = _normalize_lines(new_or_current(changes.mail_note, campaign.mail_note))
    description = UNCHANGED if changes.description == campaign.description else changes.description
    published_at = campaign.published_at
    if terms.published is not campaign.terms.published:
        published_at = now if terms.published else None
    edited = Campaign(campaign.id, name, terms, description, mail_note, published_at)
    if description is UNCHANGED and edited == campaign:
        return CampaignSaved(campaign)
    admissions = campaign.terms.admission, terms.admission
    if not changes.of_draw and SlotAdmission.DRAW in admissions and len(set(admissions)) > 1:
        return DRAW_OWNS_ADMISSION
    terms = replace(terms, version=terms.version + 1)
    edited = replace(edited, terms=terms)
    if changes.allow_past or terms.closes_at == campaign.terms.closes_at:
        return _validated(edited)
    return _validated(edited, past_end_problem(terms, now))


def _normalize_terms(terms: CampaignTerms) -> CampaignTerms:
    eligible_groups = tuple(
        tuple(sorted(set(map(normalize_line, groups)))) for groups in terms.eligible_groups
    )
    return replace(
        terms,
        eligible_groups=eligible_groups,
        group_limits=normalize_group_limits(terms.group_limits),
        leader_groups=clean_groups(terms.leader_groups),
    )


def _normalize_lines(text: str | None) -> str | None:
    """Return a text of several lines without blanks around it; None if it is empty."""
    return strip_blanks((text or "").replace("\r\n", "\n").replace("\r", "\n")) or None


def normalize_group_limits(limits: tuple[GroupLimit, ...]) -> tuple[GroupLimit, ...]:
    """Return the limits with normalized names, sorted and without duplicates."""
    normalized = {GroupLimit(normalize_line(limit.group), limit.limit) for limit in limits}
    return tuple(sorted(normalized, key=lambda limit: (limit.group, limit.limit)))


def past_end_problem(terms: CampaignTerms, now: datetime) -> FieldProblem | None:
    """Return the problem of a campaign that closes in the past; None if its times are wrong."""
    if not terms.opens_at < terms.closes_at <= now:
        return None
    problem = ProblemCode.CLOSES_IN_PAST.problem(time=format_in_zone(terms.closes_at))
    return FieldProblem("closesAt", problem)


def _validated(
    campaign: Campaign, more: FieldProblem | None = None
) -> CampaignSaved | InvalidInput:
    problems = (*campaign_problems(campaign), *filter(None, (more,)))
    return InvalidInput(problems) if problems else CampaignSaved(campaign)


def campaign_problems(campaign: Campaign) -> Iterator[FieldProblem]:
    """Yield the problems of a campaign, each with the field of the input."""
    terms = campaign.terms
    name_problem = validate_line(campaign.name, MAX_CAMPAIGN_NAME_LENGTH)
    if not campaign.name:
        name_problem = ProblemCode.NAME_MISSING.problem()
    if name_problem:
        yield FieldProblem("name", name_problem)
    yield from _text_problems("description", campaign.description, MAX_DESCRIPTION_LENGTH)
    yield from _text_problems("mailNote", campaign.mail_note, MAX_MAIL_NOTE_LENGTH)
    if terms.closes_at <= terms.opens_at:
        yield FieldProblem("closesAt", ProblemCode.CLOSES_BEFORE_OPENING.problem())
    if terms.max_bookings is not None and not 1 <= terms.max_bookings <= MAX_LIMIT_VALUE:
        not_in_range = ProblemCode.NOT_IN_RANGE.problem(minimum=1, maximum=MAX_LIMIT_VALUE)
        yield FieldProblem("maxBookings", not_in_range)
    if problem := _validate_group_sets(terms.eligible_groups):
        yield FieldProblem("eligibleGroups", problem)
    if problem := validate_group_limits(terms.group_limits, MAX_LIMIT_VALUE):
        yield FieldProblem("groupLimits", problem)
    if problem := _leader_groups_problem(terms.leader_groups):
        yield FieldProblem("leaderGroups", problem)
    yield from _mail_problems(terms)
    if terms.no_show_limit is not None:
        yield from _no_show_limit_problems(terms.no_show_limit)


def _leader_groups_problem(patterns: tuple[str, ...]) -> Problem | None:
    if len(patterns) > MAX_GROUP_LIMITS:
        return ProblemCode.TOO_MANY_GROUPS.problem(maximum=MAX_GROUP_LIMITS)
    return next(filter(None, map(validate_pattern, patterns)), None)


def _text_problems(
    field: str, text: str | Unchanged | None, max_length: int
) -> Iterator[FieldProblem]:
    if isinstance(text, str) and (problem := validate_text(text, max_length)):
        yield FieldProblem(field, problem)


def _mail_problems(terms: CampaignTerms) -> Iterator[FieldProblem]:
    for field_name, value, most in (
        ("reminderMinutes", terms.reminder_minutes, MAX_REMINDER_MINUTES),
        ("openingMailHours", terms.opening_mail_hours, MAX_OPENING_MAIL_HOURS),
    ):
        if value is not None and (problem := Number(0, most).problem(value)):
            yield FieldProblem(field_name, problem)


def _no_show_limit_problems(limit: NoShowLimit) -> Iterator[FieldProblem]:
    if not 1 <= limit.count <= MAX_NO_SHOW_COUNT:
        problem = ProblemCode.NOT_IN_RANGE.problem(minimum=1, maximum=MAX_NO_SHOW_COUNT)
        yield FieldProblem("count", problem)
    if not 1 <= limit.days <= MAX_NO_SHOW_DAYS:
        problem = ProblemCode.NOT_IN_RANGE.problem(minimum=1, maximum=MAX_NO_SHOW_DAYS)
        yield FieldProblem("days", problem)


def _validate_group_sets(group_sets: GroupSets) -> Problem | None:
    if len(group_sets) > MAX_GROUP_SETS:
        return ProblemCode.TOO_MANY_GROUP_SETS.problem(maximum=MAX_GROUP_SETS)
    for groups in group_sets:
        if not 1 <= len(groups) <= MAX_GROUPS_PER_SET:
            return ProblemCode.GROUP_SET_SIZE.problem(maximum=MAX_GROUPS_PER_SET)
        if problem := next(filter(None, map(validate_group, groups)), None):
            return problem
    return None


def validate_group_limits(limits: tuple[GroupLimit, ...], max_limit: int) -> Problem | None:
    """Return the problem with limits of groups, or None."""
    if len(limits) > MAX_GROUP_LIMITS:
        return ProblemCode.TOO_MANY_LIMITS.problem(maximum=MAX_GROUP_LIMITS)
    if len({limit.group for limit in limits}) < len(limits):
        return ProblemCode.TWO_LIMITS.problem()
    for limit in limits:
        if not 1 <= limit.limit <= max_limit:
            return ProblemCode.LIMIT_NOT_IN_RANGE.problem(minimum=1, maximum=max_limit)
        if problem := validate_pattern(limit.group):
            return problem
    return None
