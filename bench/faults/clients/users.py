"""What the users of a campaign do: book, hold, confirm, cancel, move, wait, queue and read."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence

from bench.faults.clients import documents
from bench.faults.clients.plan import Clients, ClientUser, Team, type_of
from bench.faults.clients.sending import send, send_until_answered
from bench.faults.clients.tickets import follow_ticket
from bench.faults.history import BOOK_ALL, GUARDIANS, REUSE, TEAM, Json, Operation

WAITS_MS = (0, 0, 0, 200, 2_000, 5_000)
# The pause before each action of a user whose slots have limits or change.
TEAM_THINK_S = 0.8
JOIN_ATTEMPTS = 20
# This share of bookings is for somebody else, if the user may do that.
OTHERS_SHARE, CHILDREN_SHARE = 0.3, 0.8

Action = Callable[[Clients, ClientUser], Awaitable[None]]


async def run_user(
    clients: Clients, user: ClientUser, actions: dict[Action, float], mean_think_s: float
) -> None:
    """Perform random actions until the campaign stops."""
    chosen, weights = zip(*actions.items(), strict=True)
    while await clients.sleep(user.rng.expovariate(1 / mean_think_s)):
        await user.rng.choices(chosen, weights)[0](clients, user)


def _pick_slot(user: ClientUser) -> str:
    # Most users want the first slots; otherwise their requests would never conflict.
    return user.slots[min(int(user.rng.expovariate(1 / 6)), len(user.slots) - 1)]


def remember_booking(user: ClientUser, sent: Operation) -> str | None:
    """Return the booking of a response, which the user knows from now on if they may change it."""
    outcome = sent.outcome or {}
    booking = (outcome.get("outcome") or outcome).get("booking")
    if not booking:
        return None
    manages_others = user.is_organizer or user.is_guardian
    if sent.input.get("userId", user.id)[-24:] != user.id and not manages_others:
        return None
    if booking["id"] in user.known_bookings:
        user.known_bookings.remove(booking["id"])
    user.known_bookings.append(booking["id"])
    return str(booking["id"])


def _remember_bookings(user: ClientUser, sent: Operation) -> None:
    """Let a guardian know what was booked at once, to cancel it later."""
    if user.is_guardian:
        user.known_bookings += [each["id"] for each in (sent.outcome or {}).get("bookings", ())]


def booking_input(user: ClientUser, rng: random.Random, slot: str, *, hold: bool) -> Json:
    """Return the input of a booking for the user, or for somebody for whom they may book."""
    given: Json = {
        "slotId": f"slot_{slot}",
        "waitMs": rng.choice(WAITS_MS),
        "idempotencyKey": user.maybe_key(),
        "hold": hold,
    }
    share = CHILDREN_SHARE if user.is_guardian else OTHERS_SHARE
    if user.others and rng.random() < share:
        given["userId"] = f"user_{rng.choice(user.others).id}"
    return given


async def book(clients: Clients, user: ClientUser) -> None:
    """Book a place."""
    variables: Json = {"input": booking_input(user, user.rng, _pick_slot(user), hold=False)}
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


async def book_all(clients: Clients, user: ClientUser) -> None:
    """Book several slots for the user and others, all of them or none."""
    rng = user.rng
    slots = rng.sample(user.slots, rng.randint(1, 3))
    claims = [
        {"slotId": f"slot_{slot}", "userId": f"user_{holder.id}"}
        for slot in slots
        for holder in rng.sample((user, *user.others), rng.randint(1, 2))
    ]
    given = {
        "claims": claims,
        "waitMs": rng.choice(WAITS_MS),
        "idempotencyKey": user.maybe_key(),
        "hold": rng.random() < 0.3,
    }
    variables: Json = {"input": given}
    name, document = BOOK_ALL, documents.BOOK_ALL
    _remember_bookings(
        user, await send_until_answered(clients, user, name, document, variables, rng)
    )


async def hold(clients: Clients, user: ClientUser) -> None:
    """Hold a place, and mostly confirm or extend the hold."""
    variables: Json = {"input": booking_input(user, user.rng, _pick_slot(user), hold=True)}
    sent = await send_until_answered(clients, user, "book", documents.BOOK, variables, user.rng)
    booking = remember_booking(user, sent)
    if booking is None or user.rng.random() < 0.25:
        return
    if await clients.sleep(user.rng.uniform(0, 0.5)):
        await _change(clients, user, booking, "confirm")


async def request(clients: Clients, user: ClientUser) -> None:
    """Queue for a place, and follow the ticket."""
    await queue(clients, user, user.rng, _pick_slot(user))


async def queue(clients: Clients, user: ClientUser, rng: random.Random, slot: str) -> None:
    """Queue for a place in this slot, and follow the ticket."""
    variables: Json = {"input": booking_input(user, rng, slot, hold=rng.random() < 0.3)}
    variables["input"].pop("waitMs")
    sent = await send_until_answered(clients, user, "request", documents.REQUEST, variables, rng)
    if type_of(sent) == "Ticket":
        last = await follow_ticket(clients, user, sent)
        if user.is_organizer or user.is_guardian or "userId" not in variables["input"]:
            remember_booking(user, last)


async def reuse_key(clients: Clients, user: ClientUser) -> None:
    """Book a place, and send its key with another request, which must be refused."""
    key = user.next_key()
    given: Json = {"slotId": f"slot_{_pick_slot(user)}", "idempotencyKey": key, "hold": False}
    variables: Json = {"input": given}
    sent = await send_until_answered(clients, user, "book", documents.BOOK, variables, user.rng)
    if remember_booking(user, sent) and type_of(sent) == "Booked":
        app, other = user.rng.choice(clients.apps), {"input": {**given, "hold": True}}
        await send(clients, user, REUSE, documents.BOOK, other, app)


async def _change(clients: Clients, user: ClientUser, booking: str, name: str) -> None:
    document = {
        "confirm": documents.CONFIRM,
        "extend": documents.EXTEND,
        "cancel": documents.CANCEL,
    }[name]
    variables = {"booking": booking, "key": user.maybe_key(), "wait": user.rng.choice(WAITS_MS)}
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
        "slotId": f"slot_{_pick_slot(user)}",
        "waitMs": user.rng.choice(WAITS_MS),
        "idempotencyKey": user.maybe_key(),
    }
    variables: Json = {"input": given}
    sent = await send_until_answered(clients, user, "move", documents.MOVE, variables, user.rng)
    remember_booking(user, sent)


async def wait(clients: Clients, user: ClientUser) -> None:
    """Join a waiting list, or sometimes leave it."""
    is_join = user.rng.random() < 0.8
    variables = {"slot": f"slot_{_pick_slot(user)}", "wait": user.rng.choice(WAITS_MS)}
    name, document = ("join", documents.JOIN) if is_join else ("leave", documents.LEAVE)
    await send_until_answered(clients, user, name, document, variables, user.rng)


async def read(clients: Clients, user: ClientUser) -> None:
    """Read a slot."""
    variables = {"slot": f"slot_{_pick_slot(user)}"}
    app = user.rng.choice(clients.apps)
    await send(clients, user, "read", documents.READ_SLOT, variables, app)


async def rejoin(clients: Clients, user: ClientUser) -> None:
    """Leave the team and join it again, so that requests of its members use an old version."""
    team = next((each for each in clients.teams if user in each.members[1:]), None)
    if team is not None:
        app, variables = user.rng.choice(clients.apps), {"team": team.id}
        await send(clients, user, TEAM, documents.LEAVE_TEAM, variables, app)
        await clients.sleep(user.rng.uniform(0, 1))
        await join_team(clients, team, user)


async def join_team(clients: Clients, team: Team, user: ClientUser) -> None:
    """Let the leader invite a user, who accepts; a refusal refuses later bookings, too."""
    leader, invitation = team.members[0], {"team": team.id, "email": user.email}
    for sender, document, variables in (
        (leader, documents.INVITE, invitation),
        (user, documents.ACCEPT, {"team": team.id}),
    ):
        for _ in range(JOIN_ATTEMPTS):
            app = user.rng.choice(clients.apps)
            sent = await send(clients, sender, TEAM, document, variables, app)
            if type_of(sent) not in ("", "TeamBusy"):
                break
            await asyncio.sleep(0.2)


async def lose_child(clients: Clients, user: ClientUser) -> None:
    """Book for a child, be its guardian no more and book again, and become its guardian again.

    Without keys, because a former guardian reads less of what was booked before.
    """
    child = user.lost_child
    if child is None:
        return
    first = next(each for each in clients.guardians if child in each.others)
    await _book_for(clients, user, child, first)
    if await set_guardians(clients, child, [first], attempts=1):
        await _book_for(clients, user, child, first)
    await set_guardians(clients, child, [first, user])


async def _book_for(
    clients: Clients, user: ClientUser, child: ClientUser, other_guardian: ClientUser
) -> None:
    """Book a place for a child, one by the queue, and one for all children at once.

    The other guardian may cancel what was booked.
    """
    slots = user.rng.sample(user.slots, 3)
    given: Json = {"idempotencyKey": None, "hold": False}
    one, queued = ({"slotId": f"slot_{slot}", "userId": f"user_{child.id}"} for slot in slots[:2])
    both = [
        {"slotId": f"slot_{slots[2]}", "userId": f"user_{each.id}"}
        for each in (child, *user.others)
    ]
    for name, document, fields in (
        ("book", documents.BOOK, one),
        ("request", documents.REQUEST, queued),
        (BOOK_ALL, documents.BOOK_ALL, {"claims": both}),
    ):
        app = user.rng.choice(clients.apps)
        variables: Json = {"input": {**given, **fields}}
        sent = await send(clients, user, name, document, variables, app)
        remember_booking(other_guardian, sent)
        _remember_bookings(other_guardian, sent)


async def set_guardians(
    clients: Clients,
    child: ClientUser,
    guardians: Sequence[ClientUser],
    attempts: int = JOIN_ATTEMPTS,
) -> bool:
    """Let an organizer replace the guardians of a child; return whether an app said so."""
    organizer, rng = clients.organizers[0], guardians[-1].rng
    ids = [f"user_{each.id}" for each in guardians]
    variables: Json = {"input": {"userId": f"user_{child.id}", "guardianIds": ids}}
    for _ in range(attempts):
        app = rng.choice(clients.apps)
        sent = await send(clients, organizer, GUARDIANS, documents.UPDATE_USER, variables, app)
        if type_of(sent) == "UserUpdated":
            return True
        await asyncio.sleep(0.2)
    return False


USER_ACTIONS: dict[Action, float] = {
    book: 24,
    book_twice: 4,
    hold: 10,
    request: 10,
    reuse_key: 1,
    change: 24,
    move: 9,
    wait: 12,
    read: 16,
}
BOOKING_ACTIONS: dict[Action, float] = {
    book: 16,
    book_all: 12,
    hold: 8,
    request: 10,
    change: 24,
    move: 9,
}
GUARDIAN_ACTIONS = {**BOOKING_ACTIONS, wait: 4, lose_child: 4}
MEMBER_ACTIONS = {**BOOKING_ACTIONS, wait: 12, rejoin: 1}
