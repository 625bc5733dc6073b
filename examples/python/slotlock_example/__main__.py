"""Two users book, hold, confirm, wait and queue for one place."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, aclosing
from typing import Any, TypeVar

from slotlock_example import booking
from slotlock_example.booking import Booking, Refusal, new_key
from slotlock_example.client import SlotlockClient, connect
from slotlock_example.operations import CANCEL_SLOT, CREATE_SLOT
from slotlock_example.retry import ApiError

URL = os.environ.get("SLOTLOCK_URL", "http://127.0.0.1:8000/graphql")
ADMIN_EMAIL = os.environ.get("SLOTLOCK_ADMIN_EMAIL", "admin@slotlock.localhost")
ADMIN_PASSWORD = os.environ.get("SLOTLOCK_ADMIN_PASSWORD", "")

Outcome = TypeVar("Outcome")


async def tour() -> None:
    """Run all steps and print their results."""
    title = f"Piano lesson {new_key()}"
    async with AsyncExitStack() as stack:
        host, ada, ben = [await stack.enter_async_context(connect(URL)) for _ in range(3)]
        await check_server(host)
        expect_data(await host.login(ADMIN_EMAIL, ADMIN_PASSWORD))
        await create_slot(host, title)

        await register(ada, "Ada")
        (slot,) = await booking.list_slots(ada, title)
        print("listed: places left:", slot.remaining)
        watching = asyncio.create_task(watch_until_cancelled(ada, slot.id))

        booked = expect_success(await booking.book(ada, slot.id, new_key()))
        print("booked:", booked.status)

        await register(ben, "Ben")
        await wait(ben, slot.id, lambda: cancel(ada, booked))

        await hold_and_confirm(ada, slot.id)
        await queue(ada, slot.id)

        await host.execute(CANCEL_SLOT, slotId=slot.id)
        await watching
        print("watched: the slot is canceled")


async def check_server(client: SlotlockClient) -> None:
    """Say at once that no server responds: the requests of an app are repeated for a minute."""
    try:
        await client.execute("{ __typename }")
    except ApiError as error:
        raise SystemExit(f"{URL} does not respond as slotlock does: {error}") from None


async def create_slot(host: SlotlockClient, title: str) -> None:
    """Create a slot with one place."""
    slot = {
        "title": title,
        "startTime": "2031-05-05T09:00:00+02:00",
        "endTime": "2031-05-05T09:45:00+02:00",
        "timeZone": "Europe/Berlin",
    }
    expect_data(await host.execute(CREATE_SLOT, input=slot))


async def register(client: SlotlockClient, name: str) -> None:
    """Create an account, which signs in at once."""
    expect_data(await client.register(name, f"{name}-{new_key()}@example.com", "correct horse"))
    print("signed in:", name)


async def watch_until_cancelled(client: SlotlockClient, slot_id: str) -> None:
    """Print each state of the slot until an organizer cancels it."""
    async with aclosing(booking.watch_slots(client, [slot_id])) as states:
        async for state in states:
            print("places left:", state.remaining)
            if state.status == "CANCELLED":
                return


async def wait(
    client: SlotlockClient, slot_id: str, other_cancels: Callable[[], Awaitable[None]]
) -> None:
    """Join the waiting list of a full slot, and wait until the other user cancels."""
    refused = await booking.book(client, slot_id, new_key())
    print("refused:", refused.code if isinstance(refused, Refusal) else refused)
    position = expect_success(await booking.join_waitlist(client, slot_id))
    print("waiting: position", position)

    following = asyncio.create_task(print_events(client))
    waiting = asyncio.create_task(booking.wait_for_place(client, slot_id))
    await other_cancels()
    place = await waiting
    if place is None:
        raise SystemExit("The waiting list ended without a place.")
    print("promoted:", place.status)
    following.cancel()
    await cancel(client, place)


async def print_events(client: SlotlockClient) -> None:
    """Print what others do to the user's bookings."""
    async with aclosing(booking.follow_my_bookings(client)) as events:
        async for action, _ in events:
            print("event:", action)


async def hold_and_confirm(client: SlotlockClient, slot_id: str) -> None:
    """Hold the place, confirm and cancel."""
    held = expect_success(await booking.book(client, slot_id, new_key(), hold=True))
    print("held:", held.status)
    confirmed = expect_success(await booking.confirm(client, held.id, new_key()))
    print("confirmed:", confirmed.status)
    await cancel(client, confirmed)


async def queue(client: SlotlockClient, slot_id: str) -> None:
    """Book through the admission queue."""
    ticket_id = expect_success(await booking.request_ticket(client, slot_id, new_key()))
    async with aclosing(booking.follow_ticket(client, ticket_id)) as tickets:
        async for ticket in tickets:
            print(f"ticket: {ticket.status}, position {ticket.position}")
            if ticket.outcome:
                print("ticket outcome:", expect_success(ticket.outcome).status)


async def cancel(client: SlotlockClient, booked: Booking) -> None:
    """Give a place back."""
    expect_success(await booking.cancel(client, booked.id, new_key()))


def expect_success(outcome: Outcome | Refusal) -> Outcome:
    """Return the outcome. An app shows the `message` of a refusal instead."""
    if isinstance(outcome, Refusal):
        raise SystemExit(f"{outcome.code}: {outcome.message}")
    return outcome


def expect_data(data: dict[str, Any]) -> None:
    """Check that the data of a mutation are no refusal, such as that of a wrong password."""
    if "code" in data:
        raise SystemExit(f"{data['code']}: {data['message']}")


try:
    asyncio.run(tour())
except ApiError as error:
    raise SystemExit(f"{error.code}: {error}") from None
