"""The setup of a simulation: users with accounts and sessions, and a campaign with its slots."""

import secrets
import time
from datetime import UTC, datetime, timedelta
from typing import Any

from slotlock.simulation.client.concurrency import gather_limited
from slotlock.simulation.client.documents import (
    CREATE_CAMPAIGN,
    CREATE_SLOT,
    PUBLISH_CAMPAIGN,
    REFRESH,
    REGISTER,
    SIGN_IN,
    UPDATE_CAMPAIGN,
)
from slotlock.simulation.client.http import GraphQLClient
from slotlock.simulation.model.attempts import SimulatedSlot, SimulatedUser
from slotlock.simulation.model.plan import Organizer, SimulationConfig, SimulationError

FIRST_NAMES_TEXT = """
Ada Ben Cleo Dan Eva Finn Gia Hugo Ida Jan Kim Leo Mia
Ned Ole Pia Quin Ravi Sue Tom Uma Vic Wim Xena Yan Zoe
"""
FIRST_NAMES = FIRST_NAMES_TEXT.split()
# Access tokens live 15 minutes; older ones are renewed before the opening.
RENEW_TOKENS_AFTER_S = 300.0
# Every process of the server learns the opening before it comes.
OPENING_DELAY = timedelta(seconds=2)


def generate_users(count: int) -> list[SimulatedUser]:
    """Return users with new e-mail addresses."""
    tag = secrets.token_hex(6)
    return [
        SimulatedUser(_user_name(number), f"user{number}.{tag}@example.com")
        for number in range(1, count + 1)
    ]


def _user_name(number: int) -> str:
    repetition, index = divmod(number - 1, len(FIRST_NAMES))
    return f"{FIRST_NAMES[index]} {repetition + 1}" if repetition else FIRST_NAMES[index]


async def sign_in(client: GraphQLClient, organizer: Organizer) -> str:
    """Sign in and return the access token; raises SimulationError and NoResponseError."""
    response = await client.query(SIGN_IN, email=organizer.email, password=organizer.password)
    if response["__typename"] != "Session":
        raise SimulationError(
            f"{organizer.email} cannot sign in with the password from {organizer.source}: "
            f"{response['message']}"
        )
    return str(response["accessToken"])


async def register_all(client: GraphQLClient, users: list[SimulatedUser]) -> None:
    """Register each user and store its session; renew the sessions if that took long."""
    password, started_at = secrets.token_urlsafe(16), time.monotonic()

    async def register(user: SimulatedUser) -> None:
        account = {"name": user.name, "email": user.email, "password": password}
        _store_session(user, await client.query(REGISTER, input=account))

    async def renew(user: SimulatedUser) -> None:
        _store_session(user, await client.query(REFRESH, token=user.refresh_token))

    await gather_limited(register, users)
    if time.monotonic() - started_at > RENEW_TOKENS_AFTER_S:
        await gather_limited(renew, users)


def _store_session(user: SimulatedUser, response: dict[str, Any]) -> None:
    if response["__typename"] == "RegistrationClosed":
        raise SimulationError(
            "the simulated users cannot register: set SLOTLOCK_REGISTRATION=open at the server"
        )
    if response["__typename"] != "Session":
        raise SimulationError(f"{user.email} cannot sign in: {response['message']}")
    user.user_id, user.token = response["user"]["id"], response["accessToken"]
    user.refresh_token = response["refreshToken"]


async def create_campaign(
    client: GraphQLClient, config: SimulationConfig, token: str
) -> tuple[str, list[SimulatedSlot]]:
    """Create and publish a campaign that opens in 12 hours; return its id and its slots."""
    now = datetime.now(UTC)
    campaign = {
        "name": f"Rush of {now:%Y-%m-%d %H:%M:%S}",
        "opensAt": _format_time(now + timedelta(hours=12)),
        "closesAt": _format_time(now + timedelta(hours=24)),
    }
    response = await client.query(CREATE_CAMPAIGN, token, input=campaign)
    campaign_id = str(require_type(response, "Campaign")["id"])
    start = now + timedelta(days=2)

    async def create_slot(number: int) -> SimulatedSlot:
        title = f"Bed {number}"
        slot = {
            "title": title,
            "startTime": _format_time(start),
            "endTime": _format_time(start + timedelta(hours=1)),
            "capacity": config.places,
            "waitlistCapacity": 0,
            "campaignId": campaign_id,
        }
        response = await client.query(CREATE_SLOT, token, input=slot)
        return SimulatedSlot(require_type(response, "Slot")["id"], title)

    slots = await gather_limited(create_slot, range(1, config.slots + 1))
    require_type(await client.query(PUBLISH_CAMPAIGN, token, id=campaign_id), "Campaign")
    return campaign_id, slots


async def set_opening(client: GraphQLClient, token: str, campaign_id: str) -> datetime:
    """Let the campaign open in two seconds by this machine's clock, and return that instant."""
    opens_at = datetime.now(UTC) + OPENING_DELAY
    change = {"campaignId": campaign_id, "opensAt": _format_time(opens_at)}
    require_type(await client.query(UPDATE_CAMPAIGN, token, input=change), "Campaign")
    return opens_at


def _format_time(at: datetime) -> str:
    return at.isoformat(timespec="milliseconds")


def require_type(response: dict[str, Any], type_name: str) -> dict[str, Any]:
    """Return a response of this type; raises SimulationError with the reason for another one."""
    if response["__typename"] != type_name:
        reasons = [response["message"], *(each["message"] for each in response.get("problems", ()))]
        raise SimulationError(f"the server rejects the organizer's request: {' '.join(reasons)}")
    return response
