"""Random operations of users: for themselves and their teams, and of organizers for anybody."""

import random
from collections.abc import Callable
from dataclasses import replace

from bench.soak.campaign import unpublish_for_a_while
from bench.soak.clients import documents
from bench.soak.clients.sending import perform, send
from bench.soak.clients.ticket_following import follow_ticket
from bench.soak.organizers import edit_slots, rejoin_team
from bench.soak.run_log import ClientOperation, Json
from bench.soak.world import SoakUser, World

WAITS_MS = (0, 0, 0, 200, 2_000, 8_000)
MEAN_THINK_TIME_S = 0.45

OperationBuilder = Callable[[World, SoakUser], ClientOperation | None]


async def run_user(world: World, user: SoakUser) -> None:
    """Perform random operations of one user until the run ends."""
    while await world.sleep(user.rng.expovariate(1 / MEAN_THINK_TIME_S)):
        if user.is_organizer and user.rng.random() < 0.3:
            if user is world.users[-1] and user.rng.random() < 0.1:
                await unpublish_for_a_while(world, user)
            else:
                await edit_slots(world, user)
            continue
        if user.rng.random() < 0.005:
            await rejoin_team(world, user)
            continue
        builders, weights = zip(*OPERATION_WEIGHTS.items(), strict=True)
        operation = user.rng.choices(builders, weights)[0](world, user)
        if operation is not None:
            await perform_and_follow(world, operation, user.rng)
        if user.rng.random() < 0.02:
            await reuse_key(world, user)


async def perform_and_follow(world: World, operation: ClientOperation, rng: random.Random) -> None:
    """Perform an operation, remember its bookings, and follow its ticket if it returns one."""
    request = await perform(world, operation, rng)
    world.remember_bookings(operation.user_id, request.response)
    follow_ticket(world, operation, request, rng)


def _pick_slot(world: World, rng: random.Random, free_share: float = 0.4) -> str:
    free = [slot for slot in world.slots if world.free_places.get(slot, 0) > 0]
    if free and rng.random() < free_share:
        return rng.choice(free)
    # Most users want the first slots; otherwise their requests would never conflict.
    return world.slots[min(int(rng.expovariate(1 / 8)), len(world.slots) - 1)]


def _maybe_key(user: SoakUser) -> str | None:
    return user.next_key() if user.rng.random() < 0.75 else None


def _pick_holder(world: World, user: SoakUser) -> SoakUser:
    """Return the user to book for."""
    if user.is_organizer and user.rng.random() < 0.6:
        return user.rng.choice(world.users)
    teams = [team for team in world.teams if user in team.members]
    if teams and user.rng.random() < 0.15:
        return user.rng.choice(user.rng.choice(teams).members)
    return user


def _pick_booking(world: World, user: SoakUser) -> tuple[str, str] | None:
    """Return a booking and the id of its user: mostly a live one, sometimes an ended one."""
    is_for_other = user.is_organizer and user.rng.random() < 0.7
    holder = user.rng.choice(world.users) if is_for_other else user
    live, known = world.live_bookings[holder.id], list(holder.known_bookings)
    pool = live if live and user.rng.random() < 0.8 else known
    return (user.rng.choice(pool), holder.id) if pool else None


def book(world: World, user: SoakUser) -> ClientOperation:
    """Return an operation that books or holds a place for the user, a team member or anybody."""
    slot, holder, key = _pick_slot(world, user.rng), _pick_holder(world, user), _maybe_key(user)
    booking_input: Json = {
        "slotId": f"slot_{slot}",
        "waitMs": user.rng.choice(WAITS_MS),
        "idempotencyKey": key,
        "hold": user.rng.random() < 0.4,
    }
    if holder is not user:
        booking_input["userId"] = f"user_{holder.id}"
    claims = ((slot, holder.id),)
    return ClientOperation(
        "book", user.id, documents.BOOK, {"input": booking_input}, user.token, key, claims
    )


def request(world: World, user: SoakUser) -> ClientOperation:
    """Return an operation that books through the admission queue."""
    return replace(book(world, user), name="request", document=documents.REQUEST)


def book_all(world: World, user: SoakUser) -> ClientOperation | None:
    """Return an operation that books several slots for a team, in a random order."""
    teams = [team for team in world.teams if user in team.members]
    if not teams and not user.is_organizer:
        return None
    users = world.users if user.is_organizer else user.rng.choice(teams).members
    slots = sorted(
        {_pick_slot(world, user.rng, free_share=0.85) for _ in range(user.rng.randint(2, 4))}
    )
    if user.rng.random() < 0.5:
        slots.reverse()
    claims = tuple(
        (slot, holder.id)
        for slot in slots
        for holder in user.rng.sample(users, user.rng.randint(1, 2))
    )
    key = _maybe_key(user)
    booking_input: Json = {
        "claims": [
            {"slotId": f"slot_{slot}", "userId": f"user_{holder_id}"} for slot, holder_id in claims
        ],
        "waitMs": user.rng.choice(WAITS_MS),
        "idempotencyKey": key,
        "hold": user.rng.random() < 0.3,
    }
    return ClientOperation(
        "bookAll", user.id, documents.BOOK_ALL, {"input": booking_input}, user.token, key, claims
    )


def _booking_operation(name: str, document: str) -> OperationBuilder:
    def build(world: World, user: SoakUser) -> ClientOperation | None:
        if (found := _pick_booking(world, user)) is None:
            return None
        key, wait_ms = _maybe_key(user), user.rng.choice(WAITS_MS)
        variables = {"booking": found[0], "key": key, "wait": wait_ms}
        return ClientOperation(name, user.id, document, variables, user.token, key)

    return build


def move(world: World, user: SoakUser) -> ClientOperation | None:
    """Return an operation that moves a booking to another slot."""
    if (found := _pick_booking(world, user)) is None:
        return None
    (booking, holder_id), slot, key = found, _pick_slot(world, user.rng), _maybe_key(user)
    move_input = {
        "bookingId": booking,
        "slotId": f"slot_{slot}",
        "waitMs": user.rng.choice(WAITS_MS),
        "idempotencyKey": key,
    }
    claims = ((slot, holder_id),)
    return ClientOperation(
        "move", user.id, documents.MOVE, {"input": move_input}, user.token, key, claims
    )


def _waitlist_operation(name: str, document: str) -> OperationBuilder:
    def build(world: World, user: SoakUser) -> ClientOperation:
        slot = _pick_slot(world, user.rng)
        full = [slot_id for slot_id in world.slots if world.free_places.get(slot_id, 1) <= 0]
        if name == "join" and full:
            slot = user.rng.choice(full)
        variables = {"slot": f"slot_{slot}", "wait": user.rng.choice(WAITS_MS)}
        return ClientOperation(name, user.id, document, variables, user.token)

    return build


async def reuse_key(world: World, user: SoakUser) -> None:
    """Send the key of a booking with another request, which the server must reject."""
    booked = [
        operation
        for operation in world.recent_operations
        if operation.user_id == user.id and operation.name == "book" and operation.first_success
    ]
    if not booked:
        return
    first = user.rng.choice(booked)
    booking_input = first.variables["input"]
    changed = {"input": {**booking_input, "hold": not booking_input["hold"]}}
    operation = ClientOperation("reuse", user.id, documents.BOOK, changed, user.token)
    sent = await send(world, operation, user.rng)
    if sent.is_final and sent.outcome != "KeyReused":
        world.run_log.record_violation(
            "key reused", f"key {first.idempotency_key} of {user.id}: {sent.outcome}"
        )


OPERATION_WEIGHTS: dict[OperationBuilder, float] = {
    book: 24,
    request: 20,
    book_all: 9,
    _booking_operation("confirm", documents.CONFIRM): 9,
    _booking_operation("extend", documents.EXTEND): 4,
    _booking_operation("cancel", documents.CANCEL): 17,
    move: 9,
    _waitlist_operation("join", documents.JOIN): 16,
    _waitlist_operation("leave", documents.LEAVE): 4,
}
