"""The users of a campaign with their sessions, and its slots, some with a limit."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from bench.faults.clients.plan import Clients, SignedInUser
from bench.faults.clients.probes import PROBE_SLOT, PROBE_SLOTS, PROBE_USERS
from bench.faults.clients.sending import send
from bench.faults.history import CREATE_SLOT, PROBE, Json
from bench.soak.clients import documents
from bench.soak.clients.client_user import Accounts, ClientUser
from bench.soak.processes.servers import SoakError
from slotlock.domain.users.user import Role
from slotlock.infrastructure.mongo.client import connect
from slotlock.infrastructure.mongo.repositories import repositories_on

ATTEMPTS = 100
# The slots of a campaign with a limit. A waiting list would pass by users who reached it.
LIMITED_KIND: Json = {"capacity": 4, "waitlistCapacity": 0, "holdMinutes": 1}
QUIET_SLOT: Json = {"capacity": 6}
SLOT_KINDS: tuple[Json, ...] = (
    {"capacity": 2, "holdMinutes": 1},
    {"capacity": 1},
    {"capacity": 3, "waitlistOfferMinutes": 1, "holdMinutes": 1},
    LIMITED_KIND,
    {"capacity": 1, "waitlistCapacity": 2},
    {"capacity": 6, "holdMinutes": 1},
)


async def set_up(clients: Clients) -> None:
    """Create the users, the campaign and its slots, before the faults; raises SoakError."""
    plan = clients.plan
    clients.users = _users_of(await _sign_in(clients, "user", plan.users))
    clients.quiet_users = _users_of(await _sign_in(clients, "quiet user", plan.quiet_users))
    clients.probe_users = _users_of(await _sign_in(clients, PROBE, PROBE_USERS))
    clients.signed_in = await _sign_in(clients, "signed in", plan.signed_in_users)
    clients.creators = _users_of(await _sign_in(clients, "creator", plan.creators, Role.ORGANIZER))
    (organizer,) = _users_of(await _sign_in(clients, "organizer", 1, Role.ORGANIZER))
    campaign = await _create_campaign(clients, organizer)
    for number in range(plan.slots):
        kind = SLOT_KINDS[number % len(SLOT_KINDS)]
        fields = {**kind, "campaignId": campaign} if kind is LIMITED_KIND else kind
        slot = await _create_slot(clients, organizer, fields)
        clients.slots.append(slot)
        if kind is LIMITED_KIND:
            clients.limited_slots.append(slot)
    for _ in range(plan.quiet_slots):
        clients.quiet_slots.append(await _create_slot(clients, organizer, QUIET_SLOT))
    for _ in clients.apps:
        slots = [await _create_slot(clients, organizer, PROBE_SLOT) for _ in range(PROBE_SLOTS)]
        clients.probe_slots.append(slots)


def _users_of(signed_in: Sequence[SignedInUser]) -> list[ClientUser]:
    return [each.user for each in signed_in]


async def _sign_in(
    clients: Clients, prefix: str, count: int, role: Role = Role.MEMBER
) -> list[SignedInUser]:
    plan, signed_in = clients.plan, list[SignedInUser]()
    client, database = connect(plan.mongo_url)
    try:
        lasts = timedelta(seconds=plan.token_s)
        accounts = Accounts(repositories_on(database), plan.secret, datetime.now(UTC), lasts)
        for index in range(count):
            name = f"{prefix} {index}"
            email = f"{prefix.replace(' ', '-')}{index}@slotlock.test"
            session = await accounts.create(name, email, role)
            user = ClientUser(
                name=name, id=str(session.user.id), token=session.token, rng=clients.rng(name)
            )
            signed_in.append(SignedInUser(user, session.refresh_token))
        return signed_in
    finally:
        await client.close()


async def _create_campaign(clients: Clients, organizer: ClientUser) -> str:
    now = datetime.now(UTC)
    given = {
        "name": "A campaign",
        "opensAt": (now - timedelta(hours=1)).isoformat(timespec="seconds"),
        "closesAt": (now + timedelta(days=1)).isoformat(timespec="seconds"),
        "allowPast": True,
        "published": True,
        "maxBookings": 1,
    }
    return await _create(clients, organizer, "createCampaign", documents.CREATE_CAMPAIGN, given)


async def _create_slot(clients: Clients, organizer: ClientUser, fields: Json) -> str:
    start = datetime.now(UTC) + timedelta(days=2)
    given = {
        "title": "A slot",
        "startTime": start.isoformat(timespec="seconds"),
        "endTime": (start + timedelta(hours=1)).isoformat(timespec="seconds"),
        **fields,
    }
    created = await _create(clients, organizer, CREATE_SLOT, documents.CREATE, given)
    return created[-24:]


async def _create(
    clients: Clients, organizer: ClientUser, name: str, document: str, given: Json
) -> str:
    """Return the id of what is created, once an app does it; raises SoakError."""
    variables: Json = {"input": given}
    for attempt in range(ATTEMPTS):
        app = clients.apps[attempt % len(clients.apps)]
        sent = await send(clients, organizer, name, document, variables, app)
        if sent.outcome is not None and "id" in sent.outcome:
            return str(sent.outcome["id"])
        await asyncio.sleep(0.3)
    raise SoakError(f"{name} is impossible: {sent.error} {sent.outcome}")
