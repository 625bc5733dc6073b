"""Campaigns: many slots under one set of terms, and what an organiser may ask for in them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from slotlock.domain.groups import group_problem, tidied
from slotlock.domain.refusals import FieldProblem, InvalidInput
from slotlock.domain.terms import CampaignId, GroupLimit, Terms
from slotlock.domain.texts import line_problem

MAX_NAME = 200
MAX_SETS = 10
MAX_GROUPS_IN_A_SET = 200
MAX_LIMITS = 100
MAX_MOST = 1000


@dataclass(frozen=True, slots=True)
class Campaign:
    """A campaign: its name and the terms that every one of its slots carries a copy of."""

    id: CampaignId
    name: str
    terms: Terms


@dataclass(frozen=True, slots=True)
class CampaignKept:
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


CampaignOutcome = CampaignKept | CampaignNotFound | CampaignBusy | InvalidInput


def create(name: str, terms: Terms) -> CampaignKept | InvalidInput:
    """The new campaign, or what is wrong with it."""
    return _checked(Campaign(terms.campaign_id, name.strip(), _tidied(terms)))


def edit(campaign: Campaign, changes: Mapping[str, Any]) -> CampaignKept | InvalidInput:
    """The campaign with the named fields replaced (`name`, and names as in `Terms`)."""
    asked = dict(changes)
    name = str(asked.pop("name", campaign.name)).strip()
    terms = _tidied(replace(campaign.terms, **asked))
    if (name, terms) == (campaign.name, campaign.terms):
        return CampaignKept(campaign)
    return _checked(Campaign(campaign.id, name, replace(terms, version=terms.version + 1)))


def _tidied(terms: Terms) -> Terms:
    eligible = tuple(tuple(sorted(set(map(tidied, groups)))) for groups in terms.eligible)
    return replace(terms, eligible=eligible, group_limits=tidied_limits(terms.group_limits))


def tidied_limits(limits: tuple[GroupLimit, ...]) -> tuple[GroupLimit, ...]:
    """The limits in the one way they are kept."""
    trimmed = {GroupLimit(tidied(limit.group), limit.limit) for limit in limits}
    return tuple(sorted(trimmed, key=lambda limit: (limit.group, limit.limit)))


def _checked(campaign: Campaign) -> CampaignKept | InvalidInput:
    problems = tuple(_problems(campaign))
    return InvalidInput(problems) if problems else CampaignKept(campaign)


def _problems(campaign: Campaign) -> Iterator[FieldProblem]:
    terms = campaign.terms
    name = line_problem(campaign.name, MAX_NAME)
    if problem := name or (None if campaign.name else "A campaign needs a name."):
        yield FieldProblem("name", problem)
    if terms.closes_at <= terms.opens_at:
        yield FieldProblem("closesAt", "It must close after it opens.")
    if terms.most is not None and not 1 <= terms.most <= MAX_MOST:
        yield FieldProblem("maxBookings", f"A number from 1 to {MAX_MOST}.")
    if problem := _eligible_problem(terms.eligible):
        yield FieldProblem("eligibleGroups", problem)
    if problem := limits_problem(terms.group_limits, MAX_MOST):
        yield FieldProblem("groupLimits", problem)


def _eligible_problem(eligible: tuple[tuple[str, ...], ...]) -> str | None:
    if len(eligible) > MAX_SETS:
        return f"At most {MAX_SETS} sets of groups."
    for groups in eligible:
        if not 1 <= len(groups) <= MAX_GROUPS_IN_A_SET:
            return f"A set has 1 to {MAX_GROUPS_IN_A_SET} groups."
        if problem := next(filter(None, map(group_problem, groups)), None):
            return problem
    return None


def limits_problem(limits: tuple[GroupLimit, ...], most: int) -> str | None:
    """What is wrong with limits of groups, or None."""
    if len(limits) > MAX_LIMITS:
        return f"At most {MAX_LIMITS} limits."
    if len({limit.group for limit in limits}) < len(limits):
        return "One limit for each group."
    for limit in limits:
        if not 1 <= limit.limit <= most:
            return f"A limit is a number from 1 to {most}."
        named = limit.group.removesuffix("*")
        if limit.group != "*" and (problem := group_problem(named)):
            return problem
    return None
