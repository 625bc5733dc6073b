"""What operators do from the command line, straight on MongoDB: the app need not run."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from slotlock.api.settings import Settings
from slotlock.auth import accounts
from slotlock.auth.accounts import EmailTaken
from slotlock.auth.auth import Auth
from slotlock.auth.passwords import PasswordHasher
from slotlock.auth.tokens import MIN_SECRET_BYTES, TokenSigner
from slotlock.desk.desk import utc_now
from slotlock.domain.people import Role, User
from slotlock.domain.refusals import InvalidInput
from slotlock.stores import mongo
from slotlock.stores.sessions import SessionRepository
from slotlock.stores.users import UserRepository


class CommandError(Exception):
    """What was asked cannot be done; the text says why."""


async def check_backends(settings: Settings) -> None:
    """Check that MongoDB can be what bookings need. Errors: OperatorError."""
    client, database = mongo.connect(settings.mongo_url or "")
    try:
        hello = await database.command("hello")
    finally:
        await client.close()
    if "setName" not in hello:
        raise CommandError(
            "MongoDB is not a replica set, so it has no transactions; "
            "start it with --replSet rs0 and run rs.initiate() once"
        )


async def create_user(settings: Settings, name: str, email: str, password: str, role: Role) -> str:
    """Create an account. Errors: OperatorError."""
    async with open_auth(settings) as auth:
        match await accounts.create_user(auth, name, email, password, role):
            case User() as user:
                return f"created {_format_user(user)}"
            case EmailTaken():
                raise CommandError(f"{email} has an account already")
            case InvalidInput() as invalid:
                text = " ".join(f"{p.field}: {p.message}" for p in invalid.problems)
                raise CommandError(text)
            case busy:
                raise CommandError(f"busy: {busy}")


async def list_users(settings: Settings) -> list[str]:
    """A line for each account, by address."""
    async with open_auth(settings) as auth:
        return [_format_user(user) async for user in auth.users.find_all()]


async def set_role(settings: Settings, email: str, role: Role) -> str:
    """Give an account another role, at once in its open sessions too. Errors: OperatorError."""
    async with open_auth(settings) as auth:
        user = await accounts.set_role(auth, email, role)
        if user is None:
            raise CommandError(f"nobody has the address {email}")
        return f"now {_format_user(user)}"


def _format_user(user: User) -> str:
    return f"{user.email}\t{user.role.value}\t{user.name}\t{user.created_at:%Y-%m-%d}"


@asynccontextmanager
async def open_auth(settings: Settings) -> AsyncIterator[Auth]:
    """Accounts as the app knows them, straight on MongoDB."""
    client, database = mongo.connect(settings.mongo_url or "")
    passwords = PasswordHasher()
    try:
        users, sessions = UserRepository(database), SessionRepository(database)
        await users.create_indexes()
        # No session is opened here, so nothing is ever signed with this key.
        tokens = TokenSigner(["-" * MIN_SECRET_BYTES])
        yield Auth(users, sessions, passwords, tokens, utc_now)
    finally:
        passwords.close()
        await client.close()
