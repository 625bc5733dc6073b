"""What the users of a campaign do: book, hold, confirm, cancel, move, wait, queue and read."""

import asyncio
import random
from collections.abc import Awaitable, Callable

from bench.faults.clients.plan import Clients
from bench.faults.clients.sending import send, send_until_answered
from bench.faults.clients.tickets import follow_ticket
from bench.faults.history import Json, Operation
from bench.soak.clients import documents
from bench.soak.clients.client_user import ClientUser

WAITS_MS = (0, 0, 0, 200, 2_000, 5_000)
READ_SLOT = "query($slot: ID!) { result: slot(id: $slot) { __typename id version remaining } }"

Action = Callable[[Clients, ClientUser], Awaitable[None]]


async def run_user(clients: Clients, user: ClientUser) -> None:
    """Perform random actions until the campaign stops."""
    actions, weights = zip(*ACTION_WEIGHTS.items(), strict=True)
    while await clients.sleep(user.rng.expovariate(1 / clients.plan.mean_think_s)):
        await user.rng.choices(actions, weights)[0](clients, user)


def _pick_slot(clients: Clients, rng: random.Random) -> str:
    # Most users want the first slots; otherwise their requests would never conflict.
    return clients.slots[min(int(rng.expovariate(1 / 6)), len(clients.slots) - 1)]


def remember_booking(user: ClientUser, sent: Operation) -> str | None:
    """Return the booking of a response, which the user knows from now on."""
    outcome = sent.outcome or {}
    booking = (outcome.get("outcome") or outcome).get("booking")
    if not booking:
        return None
    if booking["id"] in user.known_bookings:
        user.known_bookings.remove(booking["id"])
    user.known_bookings.append(booking["id"])
    return str(booking["id"])


def _booking_input(clients: Clients, user: ClientUser, *, hold: bool) -> Json:
    return {
        "slotId": f"slot_{_pick_slot(clients, user.rng)}",
        "waitMs": user.rng.choice(WAITS_MS),
        "idempotencyKey": user.next_key() if user.rng.random() < 0.6 else None,
        "hold": hold,
    }


async def book(clients: Clients, user: ClientUser) -> None:
    """Book a place."""
    variables: Json = {"input": _booking_input(clients, user, hold=False)}
    sent = await send_until_answered(clients, user, "book", documents.BOOK, variables, user.rng)
    remember_booking(user, sent)


async def book_twice(clients: Clients, user: ClientUser) -> None:
    """Book two slots of the campaign at once, at different apps, although one is allowed."""
    slots = user.rng.sample(clients.limited_slots, 2)
    apps = user.rng.sample(list(clients.apps), 2)
    inputs = [
        {"slotId": f"slot_{slot}", "waitMs": WAITS_MS[-1], "idempotencyKey": None, "hold": False}
        for slot in slots
    ]
    both = (
        send(clients, user, "book", documents.BOOK, {"input": given}, app)
        for given, app in zip(inputs, apps, strict=True)
    )
    for sent in await asyncio.gather(*both):
        remember_booking(user, sent)


async def hold(clients: Clients, user: ClientUser) -> None:
    """Hold a place, and mostly confirm or extend the hold."""
    variables: Json = {"input": _booking_input(clients, user, hold=True)}
    sent = await send_until_answered(clients, user, "book", documents.BOOK, variables, user.rng)
    booking = remember_booking(user, sent)
    if booking is None or user.rng.random() < 0.25:
        return
    if await clients.sleep(user.rng.uniform(0, 0.5)):
        await _change(clients, user, booking, "confirm")


async def request(clients: Clients, user: ClientUser) -> None:
    """Queue for a place, and follow the ticket."""
    variables: Json = {"input": _booking_input(clients, user, hold=user.rng.random() < 0.3)}
    variables["input"].pop("waitMs")
    sent = await send_until_answered(
        clients, user, "request", documents.REQUEST, variables, user.rng
    )
    if sent.outcome is not None and sent.outcome["__typename"] == "Ticket":
        remember_booking(user, await follow_ticket(clients, user, sent))


async def _change(clients: Clients, user: ClientUser, booking: str, name: str) -> None:
    document = {
        "confirm": documents.CONFIRM,
        "extend": documents.EXTEND,
        "cancel": documents.CANCEL,
    }[name]
    key = user.next_key() if user.rng.random() < 0.6 else None
    variables = {"booking": booking, "key": key, "wait": user.rng.choice(WAITS_MS)}
    await send_until_answered(clients, user, name, document, variables, user.rng)


async def change(clients: Clients, user: ClientUser) -> None:
    """Cancel a booking, or confirm or extend it once more."""
    if user.known_bookings:
        name = user.rng.choices(("cancel", "confirm", "extend"), (8, 1, 1))[0]
        booking = user.rng.choice(user.known_bookings)
        # Mostly once, so that most cancellations change something.
        if name == "cancel" and user.rng.random() < 0.8:
            user.known_bookings.remove(booking)
        await _change(clients, user, booking, name)


async def move(clients: Clients, user: ClientUser) -> None:
    """Move a booking to another slot."""
    if not user.known_bookings:
        return
    given = {
        "bookingId": user.rng.choice(user.known_bookings),
        "slotId": f"slot_{_pick_slot(clients, user.rng)}",
        "waitMs": user.rng.choice(WAITS_MS),
        "idempotencyKey": user.next_key() if user.rng.random() < 0.6 else None,
    }
    variables: Json = {"input": given}
    sent = await send_until_answered(clients, user, "move", documents.MOVE, variables, user.rng)
    remember_booking(user, sent)


async def wait(clients: Clients, user: ClientUser) -> None:
    """Join a waiting list, or sometimes leave it."""
    is_join = user.rng.random() < 0.8
    variables = {
        "slot": f"slot_{_pick_slot(clients, user.rng)}",
        "wait": user.rng.choice(WAITS_MS),
    }
    name, document = ("join", documents.JOIN) if is_join else ("leave", documents.LEAVE)
    await send_until_answered(clients, user, name, document, variables, user.rng)


async def read(clients: Clients, user: ClientUser) -> None:
    """Read a slot."""
    variables = {"slot": f"slot_{_pick_slot(clients, user.rng)}"}
    app = user.rng.choice(clients.apps)
    await send(clients, user, "read", READ_SLOT, variables, app)


ACTION_WEIGHTS: dict[Action, float] = {
    book: 24,
    book_twice: 4,
    hold: 10,
    request: 10,
    change: 24,
    move: 9,
    wait: 12,
    read: 16,
}
