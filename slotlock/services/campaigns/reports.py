"""What organisers look at: a campaign in figures, who got no place, the log of what happened."""

from dataclasses import dataclass
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
from slotlock.services.container import Services


@dataclass(frozen=True, slots=True)
class TimeSeriesOptions:
    """Over which time figures are wanted, and in which steps."""

    interval: Interval
    begin: datetime | None = None
    end: datetime | None = None


async def campaign_statistics(
    services: Services, campaign_id: CampaignId, time_series: TimeSeriesOptions | None
) -> CampaignStatistics | CampaignNotFound | TooManyPoints:
    """A campaign in figures, over time too if that is asked for."""
    campaign = await services.campaigns.find(campaign_id)
    if campaign is None:
        return CampaignNotFound(campaign_id)
    now, asked = services.now(), None
    if time_series is not None:
        opens_at = campaign.terms.opens_at
        asked = to_time_window(
            time_series.interval, time_series.begin, time_series.end, opens_at, now
        )
    if isinstance(asked, TooManyPoints):
        return asked
    return await services.campaigns.statistics.load(campaign, asked, now)


async def audit_log(
    services: Services, audit_filter: AuditFilter, first: int, after: AuditPosition | None
) -> Page[AuditEntry]:
    """The next of what happened, the newest first."""
    return await services.slots.audit_log.page(audit_filter, first, after, services.now())


async def unplaced(
    services: Services, campaign_id: CampaignId, group: str | None, first: int, after: str | None
) -> UnplacedUserPage | CampaignNotFound:
    """The next of those who have no place in a campaign, by address."""
    campaign = await services.campaigns.find(campaign_id)
    if campaign is None:
        return CampaignNotFound(campaign_id)
    return await services.campaigns.unplaced_users.page(
        campaign, group, first, after, services.now()
    )
