"""The people: names, accounts, and sessions that last until the end."""

import secrets
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from slotlock.simulation.client.concurrency import gather_limited
from slotlock.simulation.client.documents import (
    CREATE_CAMPAIGN,
    CREATE_SLOT,
    OPEN_CAMPAIGN,
    PUBLISH_CAMPAIGN,
    REFRESH,
    REGISTER,
    SIGN_IN,
)
from slotlock.simulation.client.http import GraphQLClient
from slotlock.simulation.model.attempts import SimulatedSlot, SimulatedUser
from slotlock.simulation.model.plan import Organizer, SimulationConfig, SimulationError

FIRST_NAMES_TEXT = """
Ada Ben Cleo Dan Eva Finn Gia Hugo Ida Jan Kim Leo Mia
Ned Ole Pia Quin Ravi Sue Tom Uma Vic Wim Xena Yan Zoe
"""
FIRST_NAMES = FIRST_NAMES_TEXT.split()
# Access tokens live 15 minutes; those that are older than this at the opening are renewed.
RENEW_TOKENS_AFTER_S = 300.0


def generate_users(count: int) -> list[SimulatedUser]:
    """So many people, of whom no server has heard."""
    tag = secrets.token_hex(6)
    return [
        SimulatedUser(_user_name(number), f"person{number}.{tag}@example.com")
        for number in range(1, count + 1)
    ]


def _user_name(number: int) -> str:
    turn, place = divmod(number - 1, len(FIRST_NAMES))
    return f"{FIRST_NAMES[place]} {turn + 1}" if turn else FIRST_NAMES[place]


async def sign_in(client: GraphQLClient, organizer: Organizer) -> str:
    """The organiser's access token. Errors: SimulationError, UnreachedError."""
    told = await client.query(SIGN_IN, email=organizer.email, password=organizer.password)
    if told["__typename"] != "Session":
        raise SimulationError(
            f"{organizer.email} cannot sign in, with the password from {organizer.source}: "
            f"{told['message']}"
        )
    return str(told["accessToken"])


async def register_all(
    client: GraphQLClient, users: list[SimulatedUser], on_registered: Callable[[], None]
) -> None:
    """Give everybody an account and a session; `done` is called after each."""
    password, begun = secrets.token_urlsafe(16), time.monotonic()

    async def register(user: SimulatedUser) -> None:
        given = {"name": user.name, "email": user.email, "password": password}
        _store_session(user, await client.query(REGISTER, input=given))
        on_registered()

    async def renew(user: SimulatedUser) -> None:
        _store_session(user, await client.query(REFRESH, token=user.refresh_token))

    await gather_limited(register, users)
    if time.monotonic() - begun > RENEW_TOKENS_AFTER_S:
        await gather_limited(renew, users)


def _store_session(user: SimulatedUser, response: dict[str, Any]) -> None:
    if response["__typename"] != "Session":
        raise SimulationError(f"{user.email} is not let in: {response['message']}")
    user.user_id, user.token = response["user"]["id"], response["accessToken"]
    user.refresh_token = response["refreshToken"]


# Time for the opening to be known everywhere before it comes.
OPENING_DELAY = timedelta(seconds=2)


async def create_campaign(
    client: GraphQLClient, config: SimulationConfig, token: str
) -> tuple[str, list[SimulatedSlot]]:
    """A published campaign that opens far too late, and its slots, "Bed 1" first."""
    now = datetime.now(UTC)
    campaign = {
        "name": f"Rush of {now:%Y-%m-%d %H:%M:%S}",
        "opensAt": _format_time(now + timedelta(hours=12)),
        "closesAt": _format_time(now + timedelta(hours=24)),
    }
    told = await client.query(CREATE_CAMPAIGN, token, input=campaign)
    campaign_id = str(_require_type(told, "Campaign")["id"])
    begin = now + timedelta(days=2)

    async def create_slot(number: int) -> SimulatedSlot:
        title = f"Bed {number}"
        slot = {
            "title": title,
            "startTime": _format_time(begin),
            "endTime": _format_time(begin + timedelta(hours=1)),
            "capacity": config.places,
            "waitlistCapacity": 0,
            "campaignId": campaign_id,
        }
        told = await client.query(CREATE_SLOT, token, input=slot)
        return SimulatedSlot(_require_type(told, "Slot")["id"], title)

    slots = await gather_limited(create_slot, range(1, config.slots + 1))
    _require_type(await client.query(PUBLISH_CAMPAIGN, token, id=campaign_id), "Campaign")
    return campaign_id, slots


async def set_opening(client: GraphQLClient, token: str, campaign_id: str) -> datetime:
    """Let the campaign open in a moment, and when that is by this machine's clock."""
    opens_at = datetime.now(UTC) + OPENING_DELAY
    change = {"campaignId": campaign_id, "opensAt": _format_time(opens_at)}
    _require_type(await client.query(OPEN_CAMPAIGN, token, input=change), "Campaign")
    return opens_at


def _format_time(at: datetime) -> str:
    return at.isoformat(timespec="milliseconds")


def _require_type(response: dict[str, Any], type_name: str) -> dict[str, Any]:
    if response["__typename"] != type_name:
        raise SimulationError(f"the organiser is refused: {response['message']}")
    return response
