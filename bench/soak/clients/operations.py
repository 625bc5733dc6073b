"""What people do at the desk at random: members for themselves and their teams, organisers too."""

import random
from collections.abc import Callable
from dataclasses import replace

from bench.soak.campaign import unpublish_for_a_while
from bench.soak.clients import documents
from bench.soak.clients.sending import perform, send
from bench.soak.clients.ticket_following import follow_ticket
from bench.soak.organizers import edit_slots, reshuffle_team
from bench.soak.run_log import ClientOperation, Json
from bench.soak.world import SoakUser, World

WAITS_MS = (0, 0, 0, 200, 2_000, 8_000)
MEAN_THINK_TIME_S = 0.45  # on average


async def run_user(world: World, user: SoakUser) -> None:
    """One person's run from its beginning to its end."""
    while await world.sleep(user.rng.expovariate(1 / MEAN_THINK_TIME_S)):
        if user.is_organizer and user.rng.random() < 0.3:
            if user is world.users[-1] and user.rng.random() < 0.1:
                await unpublish_for_a_while(world, user)
            else:
                await edit_slots(world, user)
            continue
        if user.rng.random() < 0.005:
            await reshuffle_team(world, user)
            continue
        names, weights = zip(*OPERATION_WEIGHTS.items(), strict=True)
        act = user.rng.choices(names, weights)[0](world, user)
        if act is not None:
            await perform_and_follow(world, act, user.rng)
        if user.rng.random() < 0.02:
            await reuse_key(world, user)


async def perform_and_follow(world: World, operation: ClientOperation, rng: random.Random) -> None:
    """Perform an act, remember what it brought, and follow the ticket if it is one."""
    sent = await perform(world, operation, rng)
    world.remember_bookings(operation.user_id, sent.response)
    follow_ticket(world, operation, sent, rng)


def _pick_slot(world: World, rng: random.Random, free_share: float = 0.4) -> str:
    open_ = [slot for slot in world.slots if world.free_places.get(slot, 0) > 0]
    if open_ and rng.random() < free_share:
        return rng.choice(open_)
    # The first ones are everybody's favourites, or nobody would ever collide.
    return world.slots[min(int(rng.expovariate(1 / 8)), len(world.slots) - 1)]


def _maybe_key(user: SoakUser) -> str | None:
    return user.next_key() if user.rng.random() < 0.75 else None


def _pick_holder(world: World, user: SoakUser) -> SoakUser:
    if user.is_organizer and user.rng.random() < 0.6:
        return user.rng.choice(world.users)
    teams = [team for team in world.teams if user in team.members]
    if teams and user.rng.random() < 0.15:
        return user.rng.choice(user.rng.choice(teams).members)
    return user


def _pick_booking(world: World, user: SoakUser) -> tuple[str, str] | None:
    """A booking and whose it is: mostly live ones, sometimes such as ended a while ago."""
    whose = user.rng.choice(world.users) if user.is_organizer and user.rng.random() < 0.7 else user
    fresh, old = world.live_bookings[whose.id], list(whose.known_bookings)
    pool = fresh if fresh and user.rng.random() < 0.8 else old
    return (user.rng.choice(pool), whose.id) if pool else None


def book(world: World, user: SoakUser) -> ClientOperation:
    """A place or a hold, for oneself, a mate or anybody."""
    slot, whose, key = _pick_slot(world, user.rng), _pick_holder(world, user), _maybe_key(user)
    wish: Json = {
        "slotId": f"slot_{slot}",
        "waitMs": user.rng.choice(WAITS_MS),
        "idempotencyKey": key,
        "hold": user.rng.random() < 0.4,
    }
    if whose is not user:
        wish["userId"] = f"user_{whose.id}"
    claims = ((slot, whose.id),)
    return ClientOperation(
        "book", user.id, documents.BOOK, {"input": wish}, user.token, key, claims
    )


def request(world: World, user: SoakUser) -> ClientOperation:
    """The same by the admission queue."""
    return replace(book(world, user), name="request", document=documents.REQUEST)


def book_all(world: World, user: SoakUser) -> ClientOperation | None:
    """Overlapping sets of slots for a team, in whatever order."""
    teams = [team for team in world.teams if user in team.members]
    if not teams and not user.is_organizer:
        return None
    people = world.users if user.is_organizer else user.rng.choice(teams).members
    slots = sorted(
        {_pick_slot(world, user.rng, free_share=0.85) for _ in range(user.rng.randint(2, 4))}
    )
    if user.rng.random() < 0.5:
        slots.reverse()
    pairs = [(s, p.id) for s in slots for p in user.rng.sample(people, user.rng.randint(1, 2))]
    key = _maybe_key(user)
    wish: Json = {
        "claims": [{"slotId": f"slot_{slot}", "userId": f"user_{who}"} for slot, who in pairs],
        "waitMs": user.rng.choice(WAITS_MS),
        "idempotencyKey": key,
        "hold": user.rng.random() < 0.3,
    }
    claims = tuple(pairs)
    return ClientOperation(
        "bookAll", user.id, documents.BOOK_ALL, {"input": wish}, user.token, key, claims
    )


def _booking_operation(
    name: str, document: str
) -> Callable[[World, SoakUser], ClientOperation | None]:
    def build(world: World, user: SoakUser) -> ClientOperation | None:
        if (found := _pick_booking(world, user)) is None:
            return None
        key, wait = _maybe_key(user), user.rng.choice(WAITS_MS)
        variables = {"booking": found[0], "key": key, "wait": wait}
        return ClientOperation(name, user.id, document, variables, user.token, key)

    return build


def move(world: World, user: SoakUser) -> ClientOperation | None:
    """Another slot instead."""
    if (found := _pick_booking(world, user)) is None:
        return None
    (booking, whose), slot, key = found, _pick_slot(world, user.rng), _maybe_key(user)
    wish = {
        "bookingId": booking,
        "slotId": f"slot_{slot}",
        "waitMs": user.rng.choice(WAITS_MS),
        "idempotencyKey": key,
    }
    claims = ((slot, whose),)
    return ClientOperation(
        "move", user.id, documents.MOVE, {"input": wish}, user.token, key, claims
    )


def _waitlist_operation(name: str, document: str) -> Callable[[World, SoakUser], ClientOperation]:
    def build(world: World, user: SoakUser) -> ClientOperation:
        slot = _pick_slot(world, user.rng)
        full = [each for each in world.slots if world.free_places.get(each, 1) <= 0]
        if name == "join" and full:
            slot = user.rng.choice(full)
        variables = {"slot": f"slot_{slot}", "wait": user.rng.choice(WAITS_MS)}
        return ClientOperation(name, user.id, document, variables, user.token)

    return build


async def reuse_key(world: World, user: SoakUser) -> None:
    """The key of a booking with another question must be refused."""
    mine = [
        act
        for act in world.recent_operations
        if act.user_id == user.id and act.name == "book" and act.first_success
    ]
    if not mine:
        return
    first = user.rng.choice(mine)
    wish = first.variables["input"]
    other = {"input": {**wish, "hold": not wish["hold"]}}
    act = ClientOperation("reuse", user.id, documents.BOOK, other, user.token)
    sent = await send(world, act, user.rng)
    if sent.is_final and sent.outcome != "KeyReused":
        world.run_log.record_violation(
            "key reused", f"key {first.idempotency_key} of {user.id}: {sent.outcome}"
        )


OPERATION_WEIGHTS: dict[Callable[[World, SoakUser], ClientOperation | None], float] = {
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
