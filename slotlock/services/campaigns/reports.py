"""Reports for organizers about a campaign: its statistics, its readiness and unplaced users."""

from datetime import datetime

from slotlock.domain.campaigns.terms import CampaignId
from slotlock.domain.reports.campaign_readiness import CampaignReadiness, check_slots
from slotlock.domain.reports.campaign_reports import (
    CampaignStatistics,
    Interval,
    TooManyPoints,
    UnplacedUserPage,
    to_time_window,
)
from slotlock.domain.shared.value_object import value_object
from slotlock.services.container import Services
from slotlock.services.slots.editing import resource_rivals

MAX_CHECKED_SLOTS = 1000
# How many users a report names.
MAX_EXAMPLES = 5


@value_object
class TimeSeriesOptions:
    """The range and the interval of a time series; the defaults are those of `to_time_window`."""

    interval: Interval
    begin: datetime | None = None
    end: datetime | None = None


async def campaign_statistics(
    services: Services, campaign_id: CampaignId, time_series: TimeSeriesOptions | None
) -> CampaignStatistics | TooManyPoints | None:
    """Return the statistics of a campaign, with a time series if `time_series` is given.

    None if there is no such campaign.
    """
    campaign = await services.campaigns.find(campaign_id)
    if campaign is None:
        return None
    now, window = services.now(), None
    if time_series is not None:
        opens_at = campaign.terms.opens_at
        window = to_time_window(
            time_series.interval, time_series.begin, time_series.end, opens_at, now
        )
    if isinstance(window, TooManyPoints):
        return window
    return await services.campaign_statistics.load(campaign, window, now)


async def readiness(services: Services, campaign_id: CampaignId) -> CampaignReadiness | None:
    """Return what stands in the way before a campaign is published; None without a campaign."""
    campaign = await services.campaigns.find(campaign_id)
    if campaign is None:
        return None
    slots = await services.campaigns.find_slots_to_copy(campaign_id, MAX_CHECKED_SLOTS)
    rivals, _ = await resource_rivals(services, slots)
    users, terms = services.eligible_users, campaign.terms
    return CampaignReadiness(
        check_slots(slots, rivals, services.now()),
        await users.find(terms, MAX_EXAMPLES),
        await users.find_without_password(terms, MAX_EXAMPLES, services.now()),
        terms.max_bookings,
    )


async def unplaced(
    services: Services, campaign_id: CampaignId, group: str | None, first: int, after: str | None
) -> UnplacedUserPage | None:
    """Return the next eligible users without a booking in the campaign, by e-mail address.

    None if there is no such campaign.
    """
    campaign = await services.campaigns.find(campaign_id)
    if campaign is None:
        return None
    return await services.unplaced_users.page(campaign, group, first, after, services.now())
