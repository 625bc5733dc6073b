"""Loaders that combine the reads of one operation and load each value once."""

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from typing import Any, TypeVar

from strawberry.dataloader import DataLoader

from slotlock.auth.container import Auth
from slotlock.auth.sessions import SessionInfo, list_sessions
from slotlock.auth.sign_on.identities import IdentityInfo, list_identities
from slotlock.domain.booking.booking import Booking, BookingRef, SlotId, WaitlistEntryId
from slotlock.domain.booking.slot import SeriesId
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.campaigns.campaign import Campaign
from slotlock.domain.campaigns.terms import CampaignId
from slotlock.domain.resources.resource import Resource
from slotlock.domain.shared.pagination import Page, TimeFilter, TimePage
from slotlock.domain.shared.value_object import value_object
from slotlock.domain.slots.listing import SlotSelection
from slotlock.domain.slots.selected_slot import ReadableSlot
from slotlock.domain.users.groups import similar_groups
from slotlock.domain.users.user import Caller, User, UserId
from slotlock.services.booking.permissions import with_led_slots
from slotlock.services.campaigns import campaigns
from slotlock.services.container import Services
from slotlock.services.slots import viewer_queries

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


@value_object
class SeriesPage:
    """Which slots of a series to load, and what of them for whom."""

    series_id: SeriesId
    page: TimePage
    selection: SlotSelection
    viewer: Caller | None


class DataLoaders:
    """The loaders of one operation. They load what the viewer may see, as domain values."""

    def __init__(self, services: Services, auth: Auth, viewer: Caller | None) -> None:
        self._services = services
        self._auth = auth
        self._viewer = viewer
        self._users: dict[UserId, asyncio.Future[User | None]] = {}

    @cached_property
    def now(self) -> datetime:
        """One time for all lists of the operation, so that equal pages are one read."""
        return self._services.now()

    async def user(self, user_id: UserId) -> User | None:
        """Load a user by id. The repository combines the reads of all operations."""
        found = self._users.get(user_id)
        if found is None:
            found = self._users[user_id] = self._services.users.find_soon(user_id)
        return await found

    @cached_property
    def campaigns(self) -> DataLoader[CampaignId, Campaign | None]:
        """Load visible campaigns by id."""
        # The repository combines single reads, also those of other operations, into one query.
        return _load_each(lambda id_: campaigns.find(self._services, id_, self._viewer))

    @cached_property
    def bookings(self) -> DataLoader[BookingRef, tuple[Booking, SlotState, Caller] | None]:
        """Load the bookings that the viewer manages, with their slots and who reads them."""
        return _load_each(self._find_booking)

    @cached_property
    def series_pages(self) -> DataLoader[SeriesPage, Page[ReadableSlot]]:
        """Load visible slots of series. The slots of one series share a page."""
        return _load_each(
            lambda page: viewer_queries.list_series(
                self._services,
                page.series_id,
                page.page,
                page.viewer,
                page.selection,
            )
        )

    @cached_property
    def series_counts(self) -> DataLoader[tuple[SeriesId, TimeFilter, datetime], int | None]:
        """Count the visible slots of series, once for all slots of a series."""
        return _load_each(
            lambda key: viewer_queries.count_series(self._services, *key, self._viewer)
        )

    @cached_property
    def waitlists(self) -> DataLoader[SlotId, Sequence[WaitlistEntryId]]:
        """Load the ids of waiting list entries by slot, in the order of the list."""
        return _load_each(self._services.waitlists.find_ids)

    @cached_property
    def waits_ended(self) -> DataLoader[tuple[UserId, SlotId], datetime | None]:
        """Load when users last stopped waiting for slots without getting a place."""
        return _load_all(self._find_waits_ended)

    @cached_property
    def sessions(self) -> DataLoader[UserId, Sequence[SessionInfo]]:
        """Load the open sessions of the viewer. Other users' sessions are never visible."""
        return _load_each(self._list_sessions)

    @cached_property
    def identities(self) -> DataLoader[UserId, Sequence[IdentityInfo] | None]:
        """Load what users sign in with at providers."""
        return _load_all(lambda user_ids: list_identities(self._auth, user_ids))

    @cached_property
    def slot_descriptions(self) -> DataLoader[SlotId, str | None]:
        """Load the descriptions of slots that the viewer sees."""
        return _load_all(self._services.descriptions.find_of_slots)

    @cached_property
    def campaign_descriptions(self) -> DataLoader[CampaignId, str | None]:
        """Load the descriptions of campaigns that the viewer sees."""
        return _load_all(self._services.descriptions.find_of_campaigns)

    @cached_property
    def has_wishes(self) -> DataLoader[CampaignId, bool | None]:
        """Load whether the viewer or a dependent has wishes in campaigns."""
        return _load_all(self._find_wished)

    @cached_property
    def _known_groups(self) -> DataLoader[None, Sequence[str]]:
        return _load_each(lambda _: self._auth.repositories.user_imports.find_groups())

    async def similar_groups(self, groups: Iterable[str]) -> list[list[str]] | None:
        """Return those of these groups that others only resemble; None unless to organizers."""
        if self._viewer is None or not self._viewer.is_organizer:
            return None
        wanted = set(groups)
        known = await self._known_groups.load(None) if wanted else ()
        return [list(each) for each in similar_groups(wanted, known)]

    @cached_property
    def dependents(self) -> DataLoader[UserId, Sequence[User] | None]:
        """Load the users for whom users act as guardians."""
        return _load_all(self._find_dependents)

    @cached_property
    def led_slots(self) -> DataLoader[SlotId, bool | None]:
        """Load whether the viewer leads slots."""
        return _load_all(self._find_led)

    @cached_property
    def resources(self) -> DataLoader[str, Resource | None]:
        """Load resources by name."""
        return _load_all(self._services.resources.find_all)

    async def _find_booking(self, ref: BookingRef) -> tuple[Booking, SlotState, Caller] | None:
        if self._viewer is None:
            return None
        return await viewer_queries.find_booking(
            self._services, ref.slot_id, ref.booking_id, self._viewer
        )

    async def _find_wished(self, campaign_ids: Sequence[CampaignId]) -> Mapping[CampaignId, bool]:
        if self._viewer is None:
            return {}
        dependents = await self.dependents.load(self._viewer.user_id)
        family = [self._viewer.user_id, *(each.id for each in dependents or ())]
        wished = await self._services.wishes.find_wished(campaign_ids, family)
        return dict.fromkeys(wished, True)

    async def _find_dependents(self, user_ids: Sequence[UserId]) -> Mapping[UserId, Sequence[User]]:
        found = await self._services.users.find_dependents(user_ids)
        return {id_: [each for each in found if id_ in each.guardians] for id_ in user_ids}

    async def _find_led(self, slot_ids: Sequence[SlotId]) -> Mapping[SlotId, bool]:
        if self._viewer is None:
            return {}
        viewer = await with_led_slots(self._services, self._viewer, slot_ids)
        return {slot_id: True for slot_id in slot_ids if slot_id in viewer.leads}

    async def _find_waits_ended(
        self, waits: Sequence[tuple[UserId, SlotId]]
    ) -> Mapping[tuple[UserId, SlotId], datetime]:
        ended: dict[tuple[UserId, SlotId], datetime] = {}
        for user_id in {user_id for user_id, _ in waits}:
            slot_ids = [slot_id for of_user, slot_id in waits if of_user == user_id]
            found = await self._services.ended_bookings.find_waits_ended(slot_ids, user_id)
            ended |= {(user_id, slot_id): at for slot_id, at in found.items()}
        return ended

    async def _list_sessions(self, user_id: UserId) -> Sequence[SessionInfo]:
        if self._viewer is None or self._viewer.user_id != user_id:
            return ()
        return await list_sessions(self._auth, self._viewer)


def _load_each(find: Callable[[Key], Awaitable[Value]]) -> DataLoader[Key, Value]:
    async def load(keys: list[Key]) -> Sequence[Value]:
        return await asyncio.gather(*map(find, keys))

    return DataLoader(load)


def _load_all(
    find_all: Callable[[list[Key]], Awaitable[Mapping[Any, Value]]],
) -> DataLoader[Key, Value | None]:
    async def load(keys: list[Key]) -> Sequence[Value | None]:
        found = await find_all(keys)
        return [found.get(key) for key in keys]

    return DataLoader(load)
