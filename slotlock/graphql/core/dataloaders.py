"""Loaders that combine the reads of one operation and load each value once."""

import asyncio
from collections.abc import Sequence
from functools import cached_property

from strawberry.dataloader import DataLoader

from slotlock.auth.container import Auth
from slotlock.auth.sessions import SessionInfo, list_sessions
from slotlock.domain.booking.booking import Booking, BookingRef, SlotId, WaitlistEntryId
from slotlock.domain.booking.slot import SeriesId
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.campaigns.campaign import Campaign
from slotlock.domain.campaigns.terms import CampaignId
from slotlock.domain.resources.resource import Resource
from slotlock.domain.shared.pagination import Page, Position
from slotlock.domain.shared.values import value_object
from slotlock.domain.slots.listing import SlotSelection
from slotlock.domain.slots.reading import ReadableSlot
from slotlock.domain.users.user import Caller, User, UserId
from slotlock.services.campaigns import campaigns
from slotlock.services.container import Services
from slotlock.services.slots import counts, queries


@value_object
class SeriesPage:
    """Which slots of a series to load, and what of them."""

    series_id: SeriesId
    first: int
    after: Position | None
    selection: SlotSelection


class DataLoaders:
    """The loaders of one operation. They load what the viewer may see, as domain values."""

    def __init__(self, services: Services, auth: Auth, viewer: Caller | None) -> None:
        self._services = services
        self._auth = auth
        self._viewer = viewer
        self._users: dict[UserId, asyncio.Future[User | None]] = {}

    async def user(self, user_id: UserId) -> User | None:
        """Load a user by id. The repository combines the reads of all operations."""
        found = self._users.get(user_id)
        if found is None:
            found = self._users[user_id] = self._services.users.find_soon(user_id)
        return await found

    @cached_property
    def campaigns(self) -> DataLoader[CampaignId, Campaign | None]:
        """Load visible campaigns by id."""
        return DataLoader(self._load_campaigns)

    @cached_property
    def bookings(self) -> DataLoader[BookingRef, tuple[Booking, SlotState] | None]:
        """Load the viewer's own bookings, and for organizers all bookings, with their slots."""
        return DataLoader(self._load_bookings)

    @cached_property
    def series_pages(self) -> DataLoader[SeriesPage, Page[ReadableSlot]]:
        """Load visible slots of series. The slots of one series share a page."""
        return DataLoader(self._load_series_pages)

    @cached_property
    def series_counts(self) -> DataLoader[SeriesId, int | None]:
        """Count the visible slots of series, once for all slots of a series."""
        return DataLoader(self._load_series_counts)

    @cached_property
    def waitlists(self) -> DataLoader[SlotId, Sequence[WaitlistEntryId]]:
        """Load the ids of waiting list entries by slot, in the order of the list."""
        return DataLoader(self._load_waitlists)

    @cached_property
    def sessions(self) -> DataLoader[UserId, Sequence[SessionInfo]]:
        """Load the open sessions of the viewer. Other users' sessions are never visible."""
        return DataLoader(self._load_sessions)

    @cached_property
    def slot_descriptions(self) -> DataLoader[SlotId, str | None]:
        """Load the descriptions of slots that the viewer sees."""
        return DataLoader(self._load_slot_descriptions)

    @cached_property
    def campaign_descriptions(self) -> DataLoader[CampaignId, str | None]:
        """Load the descriptions of campaigns that the viewer sees."""
        return DataLoader(self._load_campaign_descriptions)

    @cached_property
    def resources(self) -> DataLoader[str, Resource | None]:
        """Load resources by name."""
        return DataLoader(self._load_resources)

    async def _load_resources(self, names: list[str]) -> Sequence[Resource | None]:
        found = await self._services.resources.find_all(names)
        return [found.get(name) for name in names]

    async def _load_slot_descriptions(self, slot_ids: list[SlotId]) -> Sequence[str | None]:
        found = await self._services.descriptions.find_of_slots(slot_ids)
        return [found.get(slot_id) for slot_id in slot_ids]

    async def _load_campaign_descriptions(
        self, campaign_ids: list[CampaignId]
    ) -> Sequence[str | None]:
        found = await self._services.descriptions.find_of_campaigns(campaign_ids)
        return [found.get(campaign_id) for campaign_id in campaign_ids]

    async def _load_campaigns(self, campaign_ids: list[CampaignId]) -> Sequence[Campaign | None]:
        # The repository combines single reads, also those of other operations, into one query.
        return await asyncio.gather(
            *(
                campaigns.find(self._services, campaign_id, self._viewer)
                for campaign_id in campaign_ids
            )
        )

    async def _load_bookings(
        self, refs: list[BookingRef]
    ) -> Sequence[tuple[Booking, SlotState] | None]:
        viewer = self._viewer
        if viewer is None:
            return [None] * len(refs)
        return await asyncio.gather(
            *(
                queries.find_booking(self._services, ref.slot_id, ref.booking_id, viewer)
                for ref in refs
            )
        )

    async def _load_series_pages(self, pages: list[SeriesPage]) -> Sequence[Page[ReadableSlot]]:
        return await asyncio.gather(
            *(
                queries.list_series(
                    self._services,
                    page.series_id,
                    page.first,
                    page.after,
                    self._viewer,
                    page.selection,
                )
                for page in pages
            )
        )

    async def _load_series_counts(self, series_ids: list[SeriesId]) -> Sequence[int | None]:
        return await asyncio.gather(
            *(counts.count_series(self._services, id_, self._viewer) for id_ in series_ids)
        )

    async def _load_waitlists(self, slot_ids: list[SlotId]) -> Sequence[Sequence[WaitlistEntryId]]:
        return await asyncio.gather(*map(self._services.waitlists.find_ids, slot_ids))

    async def _load_sessions(self, user_ids: list[UserId]) -> Sequence[Sequence[SessionInfo]]:
        return [
            await list_sessions(self._auth, self._viewer)
            if self._viewer is not None and self._viewer.user_id == user_id
            else ()
            for user_id in user_ids
        ]
