"""What organisers look at: a campaign in figures, who got no place, the log of what happened."""

from dataclasses import dataclass
from datetime import datetime

from slotlock.desk.desk import Desk
from slotlock.domain.audit import AuditEntry, AuditFilter, AuditPosition
from slotlock.domain.campaigns import CampaignNotFound
from slotlock.domain.figures import CampaignFigures, Interval, TooManyPoints, span
from slotlock.domain.listing import Page
from slotlock.domain.terms import CampaignId
from slotlock.domain.unplaced import UnplacedPage


@dataclass(frozen=True, slots=True)
class OverTime:
    """Over which time figures are wanted, and in which steps."""

    interval: Interval
    begin: datetime | None = None
    end: datetime | None = None


async def campaign_figures(
    desk: Desk, campaign_id: CampaignId, over_time: OverTime | None
) -> CampaignFigures | CampaignNotFound | TooManyPoints:
    """A campaign in figures, over time too if that is asked for."""
    campaign = await desk.campaigns.find(campaign_id)
    if campaign is None:
        return CampaignNotFound(campaign_id)
    now, asked = desk.now(), None
    if over_time is not None:
        opens_at = campaign.terms.opens_at
        asked = span(over_time.interval, over_time.begin, over_time.end, opens_at, now)
    if isinstance(asked, TooManyPoints):
        return asked
    return await desk.campaigns.figures.of(campaign, asked, now)


async def audit_log(
    desk: Desk, wanted: AuditFilter, first: int, after: AuditPosition | None
) -> Page[AuditEntry]:
    """The next of what happened, the newest first."""
    return await desk.slots.audit.page(wanted, first, after, desk.now())


async def unplaced(
    desk: Desk, campaign_id: CampaignId, group: str | None, first: int, after: str | None
) -> UnplacedPage | CampaignNotFound:
    """The next of those who have no place in a campaign, by address."""
    campaign = await desk.campaigns.find(campaign_id)
    if campaign is None:
        return CampaignNotFound(campaign_id)
    return await desk.campaigns.unplaced.page(campaign, group, first, after, desk.now())
