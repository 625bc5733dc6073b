"""Loaders that combine the reads of one operation and load each value once."""

import asyncio
from collections.abc import Sequence
from functools import cached_property, partial

from strawberry.dataloader import DataLoader

from slotlock.auth.container import Auth
from slotlock.auth.sessions import SessionInfo, list_sessions
from slotlock.domain.booking.booking import SlotId, WaitlistEntryId
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.campaigns.campaign import Campaign
from slotlock.domain.campaigns.terms import CampaignId
from slotlock.domain.slots.listing import SlotSelection
from slotlock.domain.users.user import Caller, User, UserId
from slotlock.services.campaigns import campaigns
from slotlock.services.container import Services
from slotlock.services.slots import queries


class DataLoaders:
    """The loaders of one operation. They load what the viewer may see, as domain values."""

    def __init__(self, services: Services, auth: Auth, viewer: Caller | None) -> None:
        self._services = services
        self._auth = auth
        self._viewer = viewer
        self._slots: dict[SlotSelection, DataLoader[SlotId, SlotState | None]] = {}

    @cached_property
    def users(self) -> DataLoader[UserId, User | None]:
        """Load users by id."""
        return DataLoader(self._load_users)

    def slots(self, selection: SlotSelection) -> DataLoader[SlotId, SlotState | None]:
        """Load the selected parts of visible slots by id."""
        loader = self._slots.get(selection)
        if loader is None:
            loader = DataLoader(partial(self._load_slots, selection))
            self._slots[selection] = loader
        return loader

    @cached_property
    def campaigns(self) -> DataLoader[CampaignId, Campaign | None]:
        """Load visible campaigns by id."""
        return DataLoader(self._load_campaigns)

    @cached_property
    def waitlists(self) -> DataLoader[SlotId, Sequence[WaitlistEntryId]]:
        """Load the ids of waiting list entries by slot, in the order of the list."""
        return DataLoader(self._load_waitlists)

    @cached_property
    def sessions(self) -> DataLoader[UserId, Sequence[SessionInfo]]:
        """Load the open sessions of the viewer. Other users' sessions are never visible."""
        return DataLoader(self._load_sessions)

    async def _load_users(self, user_ids: list[UserId]) -> Sequence[User | None]:
        found = await self._services.users.find_many(user_ids)
        return [found.get(user_id) for user_id in user_ids]

    async def _load_slots(
        self, selection: SlotSelection, slot_ids: list[SlotId]
    ) -> Sequence[SlotState | None]:
        found = await queries.find_slots(self._services, slot_ids, self._viewer, selection)
        return [found.get(slot_id) for slot_id in slot_ids]

    async def _load_campaigns(self, campaign_ids: list[CampaignId]) -> Sequence[Campaign | None]:
        # The repository combines single reads, also those of other operations, into one query.
        return await asyncio.gather(
            *(
                campaigns.find(self._services, campaign_id, self._viewer)
                for campaign_id in campaign_ids
            )
        )

    async def _load_waitlists(self, slot_ids: list[SlotId]) -> Sequence[Sequence[WaitlistEntryId]]:
        return await asyncio.gather(*map(self._services.slots.waitlist_ids, slot_ids))

    async def _load_sessions(self, user_ids: list[UserId]) -> Sequence[Sequence[SessionInfo]]:
        return [
            await list_sessions(self._auth, self._viewer)
            if self._viewer is not None and self._viewer.user_id == user_id
            else ()
            for user_id in user_ids
        ]
