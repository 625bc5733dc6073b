"""The users of a campaign with their sessions, and its slots."""

import asyncio
from datetime import UTC, datetime, timedelta

from bench.faults.clients.plan import Clients
from bench.faults.clients.probes import PROBE_SLOT, PROBE_SLOTS, PROBE_USERS
from bench.faults.clients.sending import send
from bench.faults.history import PROBE, Json
from bench.soak.clients import documents
from bench.soak.clients.client_user import Accounts, ClientUser
from bench.soak.processes.servers import SoakError
from slotlock.domain.users.user import Role
from slotlock.infrastructure.mongo.client import connect
from slotlock.infrastructure.mongo.repositories import repositories_on

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
    plan = clients.plan
    clients.users = await _create_users(clients, "user", plan.users)
    clients.probe_users = await _create_users(clients, PROBE, PROBE_USERS)
    (organizer,) = await _create_users(clients, "organizer", 1, Role.ORGANIZER)
    for number in range(plan.slots):
        slot = await _create_slot(clients, organizer, SLOT_KINDS[number % len(SLOT_KINDS)])
        clients.slots.append(slot)
    for _ in clients.apps:
        slots = [await _create_slot(clients, organizer, PROBE_SLOT) for _ in range(PROBE_SLOTS)]
        clients.probe_slots.append(slots)


async def _create_users(
    clients: Clients, prefix: str, count: int, role: Role = Role.MEMBER
) -> list[ClientUser]:
    plan, users = clients.plan, list[ClientUser]()
    client, database = connect(plan.mongo_url)
    try:
        accounts = Accounts(
            repositories_on(database),
            plan.secret,
            datetime.now(UTC) - ISSUED_BEFORE,
            timedelta(seconds=plan.token_s),
        )
        for index in range(count):
            name = f"{prefix} {index}"
            session = await accounts.create(name, f"{prefix}{index}@slotlock.test", role)
            users.append(
                ClientUser(
                    name=name,
                    id=str(session.user.id),
                    token=session.token,
                    rng=clients.rng(name),
                )
            )
        return users
    finally:
        await client.close()


async def _create_slot(clients: Clients, organizer: ClientUser, fields: Json) -> str:
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
            return str(sent.outcome["id"])[-24:]
        await asyncio.sleep(0.3)
    raise SoakError(f"no slot can be created: {sent.error} {sent.outcome}")
