"""What operators do from the command line, straight on MongoDB: the app need not run."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from slotlock.api.settings import Settings
from slotlock.auth import accounts
from slotlock.auth.accounts import EmailTaken
from slotlock.auth.auth import Auth
from slotlock.auth.passwords import Passwords
from slotlock.auth.tokens import MIN_SECRET_BYTES, Tokens
from slotlock.desk.desk import utc_now
from slotlock.domain.people import Role, User
from slotlock.domain.refusals import InvalidInput
from slotlock.stores import mongo
from slotlock.stores.sessions import Sessions
from slotlock.stores.users import Users


class OperatorError(Exception):
    """What was asked cannot be done; the text says why."""


async def check_stores(settings: Settings) -> None:
    """Check that MongoDB can be what bookings need. Errors: OperatorError."""
    client, database = mongo.connect(settings.mongo_url or "")
    try:
        hello = await database.command("hello")
    finally:
        await client.close()
    if "setName" not in hello:
        raise OperatorError(
            "MongoDB is not a replica set, so it has no transactions; "
            "start it with --replSet rs0 and run rs.initiate() once"
        )


async def create_user(settings: Settings, name: str, email: str, password: str, role: Role) -> str:
    """Create an account. Errors: OperatorError."""
    async with open_accounts(settings) as auth:
        match await accounts.create_user(auth, name, email, password, role):
            case User() as user:
                return f"created {_line(user)}"
            case EmailTaken():
                raise OperatorError(f"{email} has an account already")
            case InvalidInput() as invalid:
                text = " ".join(f"{p.field}: {p.message}" for p in invalid.problems)
                raise OperatorError(text)
            case busy:
                raise OperatorError(f"busy: {busy}")


async def list_users(settings: Settings) -> list[str]:
    """A line for each account, by address."""
    async with open_accounts(settings) as auth:
        return [_line(user) async for user in auth.users.all()]


async def set_role(settings: Settings, email: str, role: Role) -> str:
    """Give an account another role, at once in its open sessions too. Errors: OperatorError."""
    async with open_accounts(settings) as auth:
        user = await accounts.set_role(auth, email, role)
        if user is None:
            raise OperatorError(f"nobody has the address {email}")
        return f"now {_line(user)}"


def _line(user: User) -> str:
    return f"{user.email}\t{user.role.value}\t{user.name}\t{user.created_at:%Y-%m-%d}"


@asynccontextmanager
async def open_accounts(settings: Settings) -> AsyncIterator[Auth]:
    """Accounts as the app knows them, straight on MongoDB."""
    client, database = mongo.connect(settings.mongo_url or "")
    passwords = Passwords()
    try:
        users, sessions = Users(database), Sessions(database)
        await users.prepare()
        # No session is opened here, so nothing is ever signed with this key.
        tokens = Tokens(["-" * MIN_SECRET_BYTES])
        yield Auth(users, sessions, passwords, tokens, utc_now)
    finally:
        passwords.close()
        await client.close()
