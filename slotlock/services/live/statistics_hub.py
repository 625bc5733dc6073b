"""Live statistics: at most once a second for each campaign, computed once for all subscribers.

The change stream names the slots that changed. The cost of statistics grows with the bookings of a
campaign, so that the pause between two grows with the time that they take.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime
from time import monotonic

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.campaigns.campaign import Campaign
from slotlock.domain.campaigns.terms import CampaignId
from slotlock.domain.reports.campaign_reports import CampaignStatistics
from slotlock.infrastructure.mongo.campaigns.campaign_repository import CampaignRepository
from slotlock.infrastructure.mongo.campaigns.statistics import CampaignStatisticsQueries
from slotlock.infrastructure.mongo.change_stream.change_stream import ChangeBatch
from slotlock.infrastructure.shared_change_feed import SharedChangeFeed
from slotlock.infrastructure.tasks import cancel_and_wait
from slotlock.services.live.fan_out import repeat_forever

log = logging.getLogger("slotlock.statistics")

MIN_PAUSE_S = 1.0
# Statistics take at most a fifth of the time.
PAUSES_PER_LOAD = 4


class _WatchedCampaign:
    """The latest statistics of a campaign, and what waits for the next ones."""

    def __init__(self, campaign: Campaign) -> None:
        self.campaign = campaign
        self.subscriber_count = 0
        self.latest: CampaignStatistics | None = None
        self.slot_ids: set[SlotId] = set()
        self.changed = asyncio.Event()
        self.changed.set()
        # Replaced by each new state, so that every subscriber sees each only once.
        self.published = asyncio.Event()
        self.task: asyncio.Task[None] | None = None

    async def states(self) -> AsyncGenerator[CampaignStatistics, None]:
        """Yield the latest statistics without end; a slow reader misses those in between."""
        shown: CampaignStatistics | None = None
        while True:
            published = self.published
            if self.latest is None or self.latest is shown:
                await published.wait()
            else:
                shown = self.latest
                yield shown


class StatisticsHub:
    """The subscriptions to statistics in this process."""

    def __init__(
        self,
        campaigns: CampaignRepository,
        statistics: CampaignStatisticsQueries,
        now: Callable[[], datetime],
    ) -> None:
        self._campaigns = campaigns
        self._statistics = statistics
        self._now = now
        self._watched: dict[CampaignId, _WatchedCampaign] = {}
        self._change_feed: SharedChangeFeed | None = None

    def start(self, change_feed: SharedChangeFeed) -> None:
        """Start to notice changes."""
        self._change_feed = change_feed
        change_feed.listen(self._on_changes, self._on_gap)

    @asynccontextmanager
    async def subscribe(
        self, campaign: Campaign
    ) -> AsyncIterator[AsyncGenerator[CampaignStatistics, None]]:
        """Subscribe to the statistics of a campaign. The present ones come first."""
        if self._change_feed is None:
            raise RuntimeError("the hub was not started")
        watched = self._watched.setdefault(campaign.id, _WatchedCampaign(campaign))
        watched.subscriber_count += 1
        with self._change_feed.watching():
            try:
                if watched.task is None:
                    failure = "could not compute statistics"
                    watched.task = asyncio.create_task(
                        repeat_forever(lambda: self._publish_next(watched), log, failure)
                    )
                yield watched.states()
            finally:
                watched.subscriber_count -= 1
                if watched.subscriber_count == 0:
                    self._watched.pop(campaign.id, None)
                    await cancel_and_wait(watched.task)

    def _on_changes(self, changes: ChangeBatch) -> None:
        for campaign_id, watched in self._watched.items():
            has_changed = changes.listed_slot_ids or campaign_id in changes.campaign_ids
            if has_changed or not watched.slot_ids.isdisjoint(
                changes.slot_versions.keys() | changes.deleted_slot_ids
            ):
                watched.changed.set()

    def _on_gap(self) -> None:
        for watched in self._watched.values():
            watched.changed.set()

    async def _publish_next(self, watched: _WatchedCampaign) -> None:
        await watched.changed.wait()
        watched.changed.clear()
        started_at = monotonic()
        try:
            await self._publish(watched)
        except BaseException:
            watched.changed.set()
            raise
        finally:
            await asyncio.sleep(max(MIN_PAUSE_S, PAUSES_PER_LOAD * (monotonic() - started_at)))

    async def _publish(self, watched: _WatchedCampaign) -> None:
        campaign = await self._campaigns.find(watched.campaign.id) or watched.campaign
        found = await self._statistics.load(campaign, None, self._now())
        watched.slot_ids = {slot.slot_id for slot in found.slots}
        latest = watched.latest
        if latest is None or replace(latest, at=found.at) != found:
            watched.latest = found
            published, watched.published = watched.published, asyncio.Event()
            published.set()
