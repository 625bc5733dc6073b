"""Guards of the lock, switched off one by one as the five designs lacked them."""

from typing import Any

from slotlock.desk import act
from slotlock.desk.sweeping import TURN
from slotlock.domain.availability import Availability
from slotlock.domain.bookings import SlotId
from slotlock.stores import locks
from slotlock.stores.announcements import announcement
from slotlock.stores.locks import LOCK_TTL_MS, Lease, Locks
from tests.support.variants.points import instead, reach

ALWAYS_THE_SAME = "5"

acquire = Locks.acquire


def _key(slot_id: str) -> str:
    return f"slotlock:{{{slot_id}}}:lock"


class _SamePerson:
    @staticmethod
    def token_hex(size: int) -> str:
        return ALWAYS_THE_SAME * 2 * size


def one_token_a_person() -> None:
    """The lock names its owner and not the acquisition (D2); there is one person in the test."""
    locks.secrets = _SamePerson  # type: ignore[attr-defined,assignment]


async def _get_then_delete(self: Locks, lease: Lease, *news: Availability) -> None:
    for slot_id in lease.slot_ids:
        holder = await self.line.send("GET", _key(slot_id))
        if holder and holder.decode().startswith(str(lease.token)):
            if slot_id != TURN:  # the sweeper's turn is no act
                await reach("between")
            await self.line.send("DEL", _key(slot_id))
    for state in news:
        await self.line.send("PUBLISH", *announcement(state))


def release_in_two_steps() -> None:
    """GET, compare, DEL (D2)."""
    Locks.release = _get_then_delete  # type: ignore[method-assign]


async def _some(self: Locks, *slot_ids: SlotId, wait_s: float = 0.0) -> Lease | None:
    lease = await acquire(self, *slot_ids, wait_s=wait_s)
    if lease is None and len(slot_ids) > 1:
        for slot_id in slot_ids:
            await acquire(self, slot_id)
    return lease


def lock_some_of_several() -> None:
    """Of several locks those that are free are taken, and kept though others are not (D4)."""
    Locks.acquire = _some  # type: ignore[method-assign]


async def _refreshing(self: Locks, *slot_ids: SlotId, wait_s: float = 0.0) -> Lease | None:
    lease = await acquire(self, *slot_ids, wait_s=wait_s)
    if lease is None:
        for slot_id in slot_ids:
            await self.line.send("PEXPIRE", _key(slot_id), LOCK_TTL_MS)
    return lease


def losers_renew() -> None:
    """Whoever is refused lets the holder's lock last longer, dead or alive (D4)."""
    Locks.acquire = _refreshing  # type: ignore[method-assign]


async def _keys_unlocked(self: Locks, *slot_ids: SlotId, wait_s: float = 0.0) -> Lease | None:
    if slot_ids[0].startswith("key:"):
        return Lease((), None, 0)
    return await acquire(self, *slot_ids, wait_s=wait_s)


def no_order_of_sends() -> None:
    """Sends of one key are not served one after the other, as when Redis loses their lock."""
    Locks.acquire = _keys_unlocked  # type: ignore[method-assign]


in_turn = act.in_turn


async def _release_when_all_went_well(
    desk: Any, slot_ids: Any, call: Any, wait_s: float
) -> list[Any] | None:
    lease = await desk.locks.acquire(*slot_ids, wait_s=wait_s)
    if lease is None:
        return None
    news: list[Availability] = []
    outcomes = await act.serve(desk, slot_ids, call(), news)
    if news:  # a refusal returns early
        await desk.locks.release(lease, *news)
    return outcomes


def release_when_all_went_well() -> None:
    """A return and an error skip the unlock (D3, D4)."""
    instead(in_turn, _release_when_all_went_well)


GUARDS = {
    "acquisition": one_token_a_person,
    "one-step-release": release_in_two_steps,
    "all-locks": lock_some_of_several,
    "losers-leave": losers_renew,
    "order-of-sends": no_order_of_sends,
    "finally": release_when_all_went_well,
}
