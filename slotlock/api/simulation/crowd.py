"""The people: names, accounts, and sessions that last until the end."""

import secrets
import time
from collections.abc import Callable
from typing import Any

from slotlock.api.simulation.abreast import gather_limited
from slotlock.api.simulation.documents import REFRESH, REGISTER, SIGN_IN
from slotlock.api.simulation.http import GraphQLClient
from slotlock.api.simulation.ledger import SimulatedUser
from slotlock.api.simulation.plan import Organizer, SimulationError

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
