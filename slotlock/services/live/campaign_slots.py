"""Live availability of a whole campaign: its slots, and those that appear in it later.

All readers of a campaign in a process share the list of its slots and their latest states. The
change stream names the slots that lists may show anew; those of watched campaigns are added.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.campaigns.terms import CampaignId
from slotlock.infrastructure.mongo.campaigns.campaign_repository import CampaignRepository
from slotlock.infrastructure.mongo.change_stream.change_stream import ChangeBatch
from slotlock.infrastructure.shared_change_feed import SharedChangeFeed
from slotlock.services.live.availability_hub import AvailabilityHub, AvailabilitySubscription
from slotlock.services.live.fan_out import Hub

log = logging.getLogger("slotlock.availability")

# The slots of a campaign that one subscription watches, the first by start.
MAX_SLOTS = 1000
# Slots that ended longer ago are left out.
SHOWN_AFTER_END = timedelta(days=1)


class _CampaignSlots:
    """The slots of a campaign as organizers or as members see it, and their readers."""

    def __init__(self, campaign_id: CampaignId, *, include_hidden: bool) -> None:
        self.campaign_id = campaign_id
        self.include_hidden = include_hidden
        self.slot_ids: dict[SlotId, None] = {}
        self.subscriptions: set[AvailabilitySubscription] = set()
        self.is_loaded = False
        # Several who come at once wait for one read.
        self.loading = asyncio.Lock()


class CampaignSlotsHub(Hub):
    """The subscriptions to campaigns in this process."""

    def __init__(
        self,
        campaigns: CampaignRepository,
        availability: AvailabilityHub,
        now: Callable[[], datetime],
    ) -> None:
        self._campaigns = campaigns
        self._availability = availability
        self._now = now
        self._watched: dict[tuple[CampaignId, bool], _CampaignSlots] = {}
        # The slots that may be new in a watched campaign; None for any.
        self._listed: set[SlotId] | None = set()
        self._changed = asyncio.Event()

    def start(self, change_feed: SharedChangeFeed) -> None:
        """Start to add slots that appear."""
        change_feed.listen(self._on_changes, self._on_gap)
        self._repeat(self._add_listed, log, "could not read the slots of campaigns")

    @asynccontextmanager
    async def subscribe(
        self, campaign_id: CampaignId, *, include_hidden: bool
    ) -> AsyncIterator[AvailabilitySubscription]:
        """Subscribe to the slots of a campaign; with hidden ones, also to its drafts."""
        key = campaign_id, include_hidden
        # The change feed is read from here on, so that no slot is missed that appears meanwhile.
        async with self._availability.subscribe((), sees_hidden=include_hidden) as subscription:
            watched = self._watched.setdefault(
                key, _CampaignSlots(campaign_id, include_hidden=include_hidden)
            )
            watched.subscriptions.add(subscription)
            try:
                async with watched.loading:
                    if not watched.is_loaded:
                        await self._load(watched)
                await self._availability.extend([subscription], list(watched.slot_ids))
                yield subscription
            finally:
                watched.subscriptions.discard(subscription)
                if not watched.subscriptions:
                    self._watched.pop(key, None)

    async def _load(self, watched: _CampaignSlots) -> None:
        found = await self._find(watched, None)
        watched.slot_ids, watched.is_loaded = dict.fromkeys(found), True

    async def _find(
        self, watched: _CampaignSlots, slot_ids: Sequence[SlotId] | None
    ) -> Sequence[SlotId]:
        return await self._campaigns.find_slot_ids(
            watched.campaign_id,
            slot_ids,
            ends_after=self._now() - SHOWN_AFTER_END,
            limit=MAX_SLOTS,
            include_hidden=watched.include_hidden,
        )

    def _on_changes(self, changes: ChangeBatch) -> None:
        if not self._watched:
            return
        for watched in self._watched.values():
            for slot_id in changes.deleted_slot_ids:
                watched.slot_ids.pop(slot_id, None)
        if changes.listed_slot_ids and self._listed is not None:
            self._listed |= changes.listed_slot_ids
            self._changed.set()

    def _on_gap(self) -> None:
        self._listed = None
        self._changed.set()

    async def _add_listed(self) -> None:
        await self._changed.wait()
        self._changed.clear()
        listed, self._listed = self._listed, set()
        try:
            for watched in list(self._watched.values()):
                async with watched.loading:
                    await self._add_new(watched, listed)
        except BaseException:
            self._on_gap()
            raise

    async def _add_new(self, watched: _CampaignSlots, listed: set[SlotId] | None) -> None:
        found = await self._find(watched, None if listed is None else sorted(listed))
        if listed is None:
            remaining = set(found)
            watched.slot_ids = {id_: None for id_ in watched.slot_ids if id_ in remaining}
        room = MAX_SLOTS - len(watched.slot_ids)
        new = [slot_id for slot_id in found if slot_id not in watched.slot_ids][:room]
        watched.slot_ids.update(dict.fromkeys(new))
        if new:
            await self._availability.extend(watched.subscriptions, new)
