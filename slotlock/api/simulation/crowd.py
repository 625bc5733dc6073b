"""The people: names, accounts, and sessions that last until the end."""

import secrets
import time
from collections.abc import Callable
from typing import Any

from slotlock.api.simulation.abreast import abreast
from slotlock.api.simulation.documents import REFRESH, REGISTER, SIGN_IN
from slotlock.api.simulation.http import Server
from slotlock.api.simulation.ledger import Person
from slotlock.api.simulation.plan import Organiser, SimulationError

ROLL = """
Ada Ben Cleo Dan Eva Finn Gia Hugo Ida Jan Kim Leo Mia
Ned Ole Pia Quin Ravi Sue Tom Uma Vic Wim Xena Yan Zoe
"""
NAMES = ROLL.split()
# Access tokens live 15 minutes; those that are older than this at the opening are renewed.
RENEWED_AFTER_S = 300.0


def strangers(count: int) -> list[Person]:
    """So many people, of whom no server has heard."""
    tag = secrets.token_hex(6)
    return [
        Person(_name(number), f"person{number}.{tag}@example.com") for number in range(1, count + 1)
    ]


def _name(number: int) -> str:
    turn, place = divmod(number - 1, len(NAMES))
    return f"{NAMES[place]} {turn + 1}" if turn else NAMES[place]


async def sign_in(server: Server, organiser: Organiser) -> str:
    """The organiser's access token. Errors: SimulationError, UnreachedError."""
    told = await server.ask(SIGN_IN, email=organiser.email, password=organiser.password)
    if told["__typename"] != "Session":
        raise SimulationError(
            f"{organiser.email} cannot sign in, with the password from {organiser.source}: "
            f"{told['message']}"
        )
    return str(told["accessToken"])


async def register_all(server: Server, crowd: list[Person], done: Callable[[], None]) -> None:
    """Give everybody an account and a session; `done` is called after each."""
    password, begun = secrets.token_urlsafe(16), time.monotonic()

    async def register(person: Person) -> None:
        given = {"name": person.name, "email": person.email, "password": password}
        _admit(person, await server.ask(REGISTER, input=given))
        done()

    async def renew(person: Person) -> None:
        _admit(person, await server.ask(REFRESH, token=person.refresh_token))

    await abreast(register, crowd)
    if time.monotonic() - begun > RENEWED_AFTER_S:
        await abreast(renew, crowd)


def _admit(person: Person, told: dict[str, Any]) -> None:
    if told["__typename"] != "Session":
        raise SimulationError(f"{person.email} is not let in: {told['message']}")
    person.user_id, person.token = told["user"]["id"], told["accessToken"]
    person.refresh_token = told["refreshToken"]
