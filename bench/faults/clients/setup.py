"""The users of a campaign with their sessions and teams, and its slots, some with limits."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from bench.accounts import create_accounts
from bench.faults.clients import documents
from bench.faults.clients.organizers import times_from_now
from bench.faults.clients.plan import Clients, ClientUser, Team
from bench.faults.clients.probes import PROBE_SLOT, PROBE_SLOTS, PROBE_USERS
from bench.faults.clients.sending import send
from bench.faults.clients.users import join_team, set_guardians
from bench.faults.history import CREATE_SLOT, PROBE, TEAM, Json
from bench.faults.topology.servers import CampaignError
from slotlock.domain.users.user import Role

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
# The slots of teams: alternatives, slots that cannot be canceled, and those of another campaign,
# two at a time.
CHOICE_GROUPS, SLOTS_PER_CHOICE_GROUP = ("bed", "boat"), 3
FINAL_KIND: Json = {"cancelCutoffMinutes": 86400, "capacity": 3}
TEAM_CAMPAIGN_SLOTS = 6
# One user of each team is in each class, so that a class is full before a slot.
CLASSES = ("class:a", "class:b", "class:c", "class:d")
TEAM_CAMPAIGN: Json = {
    "maxBookings": 2,
    "forbidOverlap": True,
    "groupLimits": [{"group": "class:*", "limit": 2}],
}
FAMILY_SLOTS, FAMILY_KIND = 8, {"capacity": 3, "holdMinutes": 1}
# So many days after the setup a slot starts while the users book it.
SOON_DAYS = 45 / 86_400


async def set_up(clients: Clients) -> None:
    """Create the users, the campaigns and their slots, before the faults; raises CampaignError."""
    plan = clients.plan
    clients.users = await _sign_in(clients, "user", plan.users)
    clients.quiet_users = await _sign_in(clients, "quiet user", plan.quiet_users)
    clients.probe_users = await _sign_in(clients, PROBE, PROBE_USERS)
    clients.signed_in = await _sign_in(clients, "signed in", plan.signed_in_users)
    clients.creators = await _sign_in(clients, "creator", plan.creators, Role.ORGANIZER)
    clients.organizers = await _sign_in(clients, "organizer", plan.organizers, Role.ORGANIZER)
    organizer = clients.organizers[0]
    campaign = await _create_campaign(clients, organizer, {"maxBookings": 1})
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
    for user in clients.users:
        user.slots = clients.slots
    await _set_up_families(clients, organizer)
    await _set_up_teams(clients, organizer)


async def _set_up_families(clients: Clients, organizer: ClientUser) -> None:
    """Let two guardians share a child. The second one loses the other child from time to time.

    They have slots of their own, so that most of these have free places.
    """
    slots = [await _create_slot(clients, organizer, FAMILY_KIND) for _ in range(FAMILY_SLOTS)]
    count = 2 * clients.plan.families
    clients.guardians = await _sign_in(clients, "guardian", count)
    children = await _sign_in(clients, "child", count)
    for user in clients.guardians:
        user.slots, user.is_guardian = slots, True
    for number in range(0, count, 2):
        first, second = clients.guardians[number : number + 2]
        first.others = [shared, other] = children[number : number + 2]
        second.others, second.lost_child = [shared], other
        for child in first.others:
            await set_guardians(clients, child, [first, second])


async def _set_up_teams(clients: Clients, organizer: ClientUser) -> None:
    plan = clients.plan
    clients.campaign = await _create_campaign(clients, organizer, TEAM_CAMPAIGN)
    kinds: list[tuple[Json, float]] = [
        ({"choiceGroup": name, "capacity": 3, "waitlistOfferMinutes": 1 if number else None}, 2)
        for name in CHOICE_GROUPS
        for number in range(SLOTS_PER_CHOICE_GROUP)
    ]
    kinds += [
        ({"campaignId": clients.campaign, "capacity": 3 + number % 3}, 3 + number // 2)
        for number in range(TEAM_CAMPAIGN_SLOTS)
    ]
    kinds += [(FINAL_KIND, 5), ({"capacity": 3}, SOON_DAYS)]
    clients.rng("team slots").shuffle(kinds)
    for fields, days in kinds:
        slot = await _create_slot(clients, organizer, fields, days)
        clients.team_slots.append(slot)
    members = await _sign_in(clients, "member", plan.teams * plan.team_size, groups=CLASSES)
    for number in range(plan.teams):
        team_members = members[number * plan.team_size : (number + 1) * plan.team_size]
        given = {"name": f"Team {number}"}
        team_id = await _create(clients, team_members[0], TEAM, documents.CREATE_TEAM, given)
        team = Team(team_id, team_members)
        clients.teams.append(team)
        for user in team_members[1:]:
            await join_team(clients, team, user)
    for user in (*members, *clients.organizers):
        user.slots = clients.team_slots
        circle = next((each.members for each in clients.teams if user in each.members), members)
        user.others = [each for each in circle if each is not user]


async def _sign_in(
    clients: Clients,
    prefix: str,
    count: int,
    role: Role = Role.MEMBER,
    groups: Sequence[str] = (),
) -> list[ClientUser]:
    plan = clients.plan
    lifetime = timedelta(seconds=plan.token_s)
    accounts = await create_accounts(plan.mongo_url, plan.secret, count, role, lifetime, groups)
    return [
        ClientUser(
            name=f"{prefix} {index}",
            id=account.user_id,
            email=account.email,
            token=account.token,
            refresh_token=account.refresh_token,
            rng=clients.rng(f"{prefix} {index}"),
            is_organizer=role is Role.ORGANIZER,
        )
        for index, account in enumerate(accounts)
    ]


async def _create_campaign(clients: Clients, organizer: ClientUser, limits: Json) -> str:
    now = datetime.now(UTC)
    given = {
        "name": "A campaign",
        "opensAt": (now - timedelta(hours=1)).isoformat(timespec="seconds"),
        "closesAt": (now + timedelta(days=1)).isoformat(timespec="seconds"),
        "allowPast": True,
        "published": True,
        **limits,
    }
    return await _create(clients, organizer, "createCampaign", documents.NEW_CAMPAIGN, given)


async def _create_slot(
    clients: Clients, organizer: ClientUser, fields: Json, days: float = 2
) -> str:
    given = {"title": "A slot", **times_from_now(days), **fields}
    created = await _create(clients, organizer, CREATE_SLOT, documents.CREATE, given)
    clients.slot_inputs[created[-24:]] = given
    return created[-24:]


async def _create(
    clients: Clients, organizer: ClientUser, name: str, document: str, given: Json
) -> str:
    """Return the id of what is created, once an app does it; raises CampaignError."""
    variables: Json = {"input": given}
    for attempt in range(ATTEMPTS):
        app = clients.apps[attempt % len(clients.apps)]
        sent = await send(clients, organizer, name, document, variables, app)
        if sent.outcome is not None and "id" in sent.outcome:
            return str(sent.outcome["id"])
        await asyncio.sleep(0.3)
    raise CampaignError(f"{name} is impossible: {sent.error} {sent.outcome}")
