"""Live campaigns: each subscriber gets the latest state of every campaign that it may see.

The change stream names the campaigns that changed. A campaign also changes at the times when it
opens and closes, without a write. All subscribers of a process share its reads.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import datetime

from slotlock.domain.campaigns.campaign import Campaign
from slotlock.domain.campaigns.terms import CampaignId, CampaignState
from slotlock.domain.shared.value_object import value_object
from slotlock.infrastructure.mongo.campaigns.campaign_repository import CampaignRepository
from slotlock.infrastructure.mongo.change_stream.change_stream import ChangeBatch
from slotlock.infrastructure.shared_change_feed import SharedChangeFeed
from slotlock.services.live.fan_out import WAKEUP_BATCH_SIZE, FanOutQueue, Hub
from slotlock.services.live.latest_states import LatestStates

log = logging.getLogger("slotlock.campaigns")

# A subscription begins with so many campaigns that are not over, the first to open.
MAX_CAMPAIGNS = 100
# The host may sleep, or its clock may be adjusted, while the hub waits for an opening.
MAX_WAIT_S = 10.0


@value_object
class CampaignUpdate:
    """A campaign as of now; without one it is deleted, or hidden from the subscriber."""

    campaign_id: CampaignId
    campaign: Campaign | None = None
    state: CampaignState | None = None


class CampaignSubscription(LatestStates[CampaignId, CampaignUpdate]):
    """The campaigns that one reader may see: at most one pending state for each."""

    __slots__ = ("_include_unpublished", "_shown")

    def __init__(self, wakeups: FanOutQueue, *, include_unpublished: bool) -> None:
        super().__init__(wakeups)
        self._include_unpublished = include_unpublished
        self._shown: set[CampaignId] = set()

    def publish(self, update: CampaignUpdate) -> None:
        """Queue a state; that a campaign is gone, only if the reader was shown it."""
        campaign, campaign_id = update.campaign, update.campaign_id
        if campaign is not None and (campaign.terms.published or self._include_unpublished):
            self._shown.add(campaign_id)
            self.put(campaign_id, update)
        elif campaign_id in self._shown:
            self._shown.discard(campaign_id)
            self.put(campaign_id, CampaignUpdate(campaign_id))


class CampaignHub(Hub):
    """The subscriptions to campaigns in this process."""

    def __init__(self, campaigns: CampaignRepository, now: Callable[[], datetime]) -> None:
        self._campaigns = campaigns
        self._now = now
        self._subscriptions: set[CampaignSubscription] = set()
        self._wakeups = FanOutQueue(WAKEUP_BATCH_SIZE)
        # What was published last of each campaign that is not over, or that changed since.
        self._known: dict[CampaignId, CampaignUpdate] = {}
        self._is_loaded = False
        self._loading = asyncio.Lock()
        self._changed_ids: set[CampaignId] = set()
        # Whether any campaign may have changed.
        self._has_gap = False
        self._changed = asyncio.Event()
        self._change_feed: SharedChangeFeed | None = None

    def start(self, change_feed: SharedChangeFeed) -> None:
        """Start to publish."""
        self._change_feed = change_feed
        change_feed.listen(self._on_changes, self._on_gap)
        self._repeat(self._publish_next, log, "could not read campaigns")

    @asynccontextmanager
    async def subscribe(self, *, include_unpublished: bool) -> AsyncIterator[CampaignSubscription]:
        """Subscribe to campaigns. Those that are not over come first, by opening time."""
        if self._change_feed is None:
            raise RuntimeError("the hub was not started")
        subscription = CampaignSubscription(self._wakeups, include_unpublished=include_unpublished)
        with self._change_feed.watching():
            try:
                async with self._loading:
                    if not self._is_loaded:
                        await self._load()
                    # No change is between what is known now and what is published from here on.
                    for update in self._known.values():
                        subscription.publish(update)
                    self._subscriptions.add(subscription)
                self._changed.set()  # the task may have waited without a time
                yield subscription
            finally:
                self._subscriptions.discard(subscription)
                if not self._subscriptions:
                    self._known, self._is_loaded = {}, False

    async def _load(self) -> None:
        now = self._now()
        found = await self._campaigns.find_unfinished(now, MAX_CAMPAIGNS)
        self._known = {campaign.id: _update_of(campaign, now) for campaign in found}
        self._is_loaded = True

    def _on_changes(self, changes: ChangeBatch) -> None:
        if changes.campaign_ids:
            self._changed_ids |= changes.campaign_ids
            self._changed.set()

    def _on_gap(self) -> None:
        self._has_gap = True
        self._changed.set()

    async def _publish_next(self) -> None:
        """Wait for a change, an opening or a closing, and publish what is new."""
        try:
            async with asyncio.timeout(self._wait_s()):
                await self._changed.wait()
        except TimeoutError:
            pass
        self._changed.clear()
        changed, self._changed_ids = self._changed_ids, set()
        has_gap, self._has_gap = self._has_gap, False
        try:
            async with self._loading:
                if self._is_loaded:
                    await self._publish(changed | (await self._find_all() if has_gap else set()))
        except BaseException:
            self._changed_ids |= changed
            self._on_gap()
            raise

    async def _find_all(self) -> set[CampaignId]:
        found = await self._campaigns.find_unfinished(self._now(), MAX_CAMPAIGNS)
        return self._known.keys() | {campaign.id for campaign in found}

    def _wait_s(self) -> float | None:
        """Return how long to wait for the next opening or closing; None without subscribers."""
        if not self._subscriptions:
            return None
        now = self._now()
        terms = (known.campaign.terms for known in self._known.values() if known.campaign)
        times = [time for each in terms for time in (each.opens_at, each.closes_at) if time > now]
        return min([MAX_WAIT_S, *((time - now).total_seconds() for time in times)])

    async def _publish(self, changed: set[CampaignId]) -> None:
        found = await asyncio.gather(*map(self._campaigns.find, changed))
        now = self._now()
        campaigns = {id_: known.campaign for id_, known in self._known.items()}
        campaigns |= dict(zip(changed, found, strict=True))
        for campaign_id, campaign in campaigns.items():
            update = _update_of(campaign, now) if campaign else CampaignUpdate(campaign_id)
            if update != self._known.get(campaign_id):
                self._known[campaign_id] = update
                for subscription in self._subscriptions:
                    subscription.publish(update)


def _update_of(campaign: Campaign, now: datetime) -> CampaignUpdate:
    return CampaignUpdate(campaign.id, campaign, campaign.terms.state_at(now))
