"""The users of a campaign with their sessions, and its slots."""

import asyncio
from datetime import UTC, datetime, timedelta

from bench.faults.clients.plan import Clients, User
from bench.faults.clients.sending import send
from bench.faults.history import Json
from bench.soak.clients import documents
from bench.soak.processes.servers import SoakError
from slotlock.auth.tokens import TokenClaims, TokenSigner, new_token_id
from slotlock.domain.users.user import Role
from slotlock.infrastructure.mongo.client import connect
from slotlock.infrastructure.mongo.repositories import repositories_on
from slotlock.infrastructure.mongo.users.sessions import NewSession

ATTEMPTS = 100
# An app whose clock is behind refuses tokens from its future.
ISSUED_BEFORE = timedelta(minutes=5)
SLOT_KINDS: tuple[Json, ...] = (
    {"capacity": 2, "holdMinutes": 1},
    {"capacity": 1},
    {"capacity": 3, "waitlistOfferMinutes": 1, "holdMinutes": 1},
    {"capacity": 4, "waitlistCapacity": 0, "holdMinutes": 1},
    {"capacity": 1, "waitlistCapacity": 2},
    {"capacity": 6, "holdMinutes": 1},
)


async def set_up(clients: Clients) -> None:
    """Create the users and slots of a campaign, before its faults; raises SoakError."""
    organizer = await _create_users(clients)
    for number in range(clients.plan.slots):
        await _create_slot(clients, organizer, SLOT_KINDS[number % len(SLOT_KINDS)])


async def _create_users(clients: Clients) -> User:
    plan = clients.plan
    client, database = connect(plan.mongo_url)
    try:
        repositories, tokens = repositories_on(database), TokenSigner([plan.secret])
        now = datetime.now(UTC) - ISSUED_BEFORE
        until = now + timedelta(seconds=plan.token_s)
        for index in range(plan.users + 1):
            role = Role.MEMBER if index < plan.users else Role.ORGANIZER
            email = f"faults{index}@slotlock.test"
            user = await repositories.users.insert(f"User {index}", email, role, "no password", now)
            if user is None:
                raise SoakError("the database is not new")
            opened = await repositories.sessions.open(
                NewSession(user.id, new_token_id(), now, until)
            )
            if opened is None:
                raise SoakError("a new user cannot sign in")
            claims = TokenClaims(user.id, opened[0], new_token_id(), until)
            token = tokens.sign("access", claims, now)
            clients.users.append(User(index, str(user.id), token, clients.rng(f"user {index}")))
        return clients.users.pop()
    finally:
        await client.close()


async def _create_slot(clients: Clients, organizer: User, fields: Json) -> None:
    start = datetime.now(UTC) + timedelta(days=2)
    given = {
        "title": "A slot",
        "startTime": start.isoformat(timespec="seconds"),
        "endTime": (start + timedelta(hours=1)).isoformat(timespec="seconds"),
        **fields,
    }
    for attempt in range(ATTEMPTS):
        app = clients.apps[attempt % len(clients.apps)]
        variables: Json = {"input": given}
        sent = await send(clients, organizer, "createSlot", documents.CREATE, variables, app)
        if sent.outcome is not None and sent.outcome["__typename"] == "Slot":
            clients.slots.append(str(sent.outcome["id"])[-24:])
            return
        await asyncio.sleep(0.3)
    raise SoakError(f"no slot can be created: {sent.error} {sent.outcome}")
