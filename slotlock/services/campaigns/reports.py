"""Reports for organizers: campaign statistics, unplaced users and the audit log."""

from datetime import datetime

from slotlock.domain.audit.log import AuditEntry, AuditFilter, AuditPosition
from slotlock.domain.campaigns.campaign import CampaignNotFound
from slotlock.domain.campaigns.terms import CampaignId
from slotlock.domain.reports.campaign_reports import (
    CampaignStatistics,
    Interval,
    TooManyPoints,
    UnplacedUserPage,
    to_time_window,
)
from slotlock.domain.shared.pagination import Page
from slotlock.domain.shared.values import value_object
from slotlock.services.container import Services


@value_object
class TimeSeriesOptions:
    """The range and the interval of a time series; the defaults are those of `to_time_window`."""

    interval: Interval
    begin: datetime | None = None
    end: datetime | None = None


async def campaign_statistics(
    services: Services, campaign_id: CampaignId, time_series: TimeSeriesOptions | None
) -> CampaignStatistics | CampaignNotFound | TooManyPoints:
    """Return the statistics of a campaign, with a time series if `time_series` is given."""
    campaign = await services.campaigns.find(campaign_id)
    if campaign is None:
        return CampaignNotFound(campaign_id)
    now, window = services.now(), None
    if time_series is not None:
        opens_at = campaign.terms.opens_at
        window = to_time_window(
            time_series.interval, time_series.begin, time_series.end, opens_at, now
        )
    if isinstance(window, TooManyPoints):
        return window
    return await services.campaign_statistics.load(campaign, window, now)


async def audit_log(
    services: Services, audit_filter: AuditFilter, first: int, after: AuditPosition | None
) -> Page[AuditEntry]:
    """Return the next page of the audit log, newest entries first."""
    return await services.audit_log.page(audit_filter, first, after, services.now())


async def unplaced(
    services: Services, campaign_id: CampaignId, group: str | None, first: int, after: str | None
) -> UnplacedUserPage | CampaignNotFound:
    """Return the next eligible users without a booking in the campaign, by e-mail address."""
    campaign = await services.campaigns.find(campaign_id)
    if campaign is None:
        return CampaignNotFound(campaign_id)
    return await services.unplaced_users.page(campaign, group, first, after, services.now())
