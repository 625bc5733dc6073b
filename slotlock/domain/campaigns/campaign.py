"""Campaigns: many slots under one set of terms, and what an organiser may ask for in them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from slotlock.domain.campaigns.terms import CampaignId, CampaignTerms, GroupLimit
from slotlock.domain.shared.text import normalize_name, validate_line
from slotlock.domain.shared.validation import FieldProblem, InvalidInput
from slotlock.domain.users.groups import validate_group

MAX_CAMPAIGN_NAME_LENGTH = 200
MAX_GROUP_SETS = 10
MAX_GROUPS_PER_SET = 200
MAX_GROUP_LIMITS = 100
MAX_LIMIT_VALUE = 1000


@dataclass(frozen=True, slots=True)
class Campaign:
    """A campaign: its name and the terms that every one of its slots carries a copy of."""

    id: CampaignId
    name: str
    terms: CampaignTerms


@dataclass(frozen=True, slots=True)
class CampaignSaved:
    """The campaign stands as the organiser wanted it."""

    campaign: Campaign


@dataclass(frozen=True, slots=True)
class CampaignNotFound:
    """No such campaign."""

    campaign_id: CampaignId


@dataclass(frozen=True, slots=True)
class CampaignBusy:
    """Too many others changed the same campaign at once; asking again is worth it."""

    retry_after_ms: int


CampaignOutcome = CampaignSaved | CampaignNotFound | CampaignBusy | InvalidInput


def create(name: str, terms: CampaignTerms) -> CampaignSaved | InvalidInput:
    """The new campaign, or what is wrong with it."""
    return _validated(Campaign(terms.campaign_id, name.strip(), _clean_terms(terms)))


def edit(campaign: Campaign, changes: Mapping[str, Any]) -> CampaignSaved | InvalidInput:
    """The campaign with the named fields replaced (`name`, and names as in `Terms`)."""
    asked = dict(changes)
    name = str(asked.pop("name", campaign.name)).strip()
    terms = _clean_terms(replace(campaign.terms, **asked))
    if (name, terms) == (campaign.name, campaign.terms):
        return CampaignSaved(campaign)
    return _validated(Campaign(campaign.id, name, replace(terms, version=terms.version + 1)))


def _clean_terms(terms: CampaignTerms) -> CampaignTerms:
    eligible = tuple(
        tuple(sorted(set(map(normalize_name, groups)))) for groups in terms.eligible_groups
    )
    return replace(
        terms, eligible_groups=eligible, group_limits=clean_group_limits(terms.group_limits)
    )


def clean_group_limits(limits: tuple[GroupLimit, ...]) -> tuple[GroupLimit, ...]:
    """The limits in the one way they are kept."""
    trimmed = {GroupLimit(normalize_name(limit.group), limit.limit) for limit in limits}
    return tuple(sorted(trimmed, key=lambda limit: (limit.group, limit.limit)))


def _validated(campaign: Campaign) -> CampaignSaved | InvalidInput:
    problems = tuple(_campaign_problems(campaign))
    return InvalidInput(problems) if problems else CampaignSaved(campaign)


def _campaign_problems(campaign: Campaign) -> Iterator[FieldProblem]:
    terms = campaign.terms
    name = validate_line(campaign.name, MAX_CAMPAIGN_NAME_LENGTH)
    if problem := name or (None if campaign.name else "A campaign needs a name."):
        yield FieldProblem("name", problem)
    if terms.closes_at <= terms.opens_at:
        yield FieldProblem("closesAt", "It must close after it opens.")
    if terms.max_bookings is not None and not 1 <= terms.max_bookings <= MAX_LIMIT_VALUE:
        yield FieldProblem("maxBookings", f"A number from 1 to {MAX_LIMIT_VALUE}.")
    if problem := _validate_group_sets(terms.eligible_groups):
        yield FieldProblem("eligibleGroups", problem)
    if problem := validate_group_limits(terms.group_limits, MAX_LIMIT_VALUE):
        yield FieldProblem("groupLimits", problem)


def _validate_group_sets(group_sets: tuple[tuple[str, ...], ...]) -> str | None:
    if len(group_sets) > MAX_GROUP_SETS:
        return f"At most {MAX_GROUP_SETS} sets of groups."
    for groups in group_sets:
        if not 1 <= len(groups) <= MAX_GROUPS_PER_SET:
            return f"A set has 1 to {MAX_GROUPS_PER_SET} groups."
        if problem := next(filter(None, map(validate_group, groups)), None):
            return problem
    return None


def validate_group_limits(limits: tuple[GroupLimit, ...], max_limit: int) -> str | None:
    """What is wrong with limits of groups, or None."""
    if len(limits) > MAX_GROUP_LIMITS:
        return f"At most {MAX_GROUP_LIMITS} limits."
    if len({limit.group for limit in limits}) < len(limits):
        return "One limit for each group."
    for limit in limits:
        if not 1 <= limit.limit <= max_limit:
            return f"A limit is a number from 1 to {max_limit}."
        named = limit.group.removesuffix("*")
        if limit.group != "*" and (problem := validate_group(named)):
            return problem
    return None
