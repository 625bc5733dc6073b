"""What operators do from the command line, straight on MongoDB: the app need not run."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from slotlock.api.endpoints.users import invitation_csv_lines
from slotlock.api.settings.settings import Settings
from slotlock.auth import accounts
from slotlock.auth.accounts import EmailTaken
from slotlock.auth.container import Auth
from slotlock.auth.invitations import invite
from slotlock.auth.login_throttle import NoLoginThrottle
from slotlock.auth.passwords import PasswordHasher
from slotlock.auth.tokens import MIN_SECRET_BYTES, TokenSigner
from slotlock.auth.user_import import import_users
from slotlock.domain.shared.validation import InvalidInput
from slotlock.domain.users.groups import clean_groups, validate_group
from slotlock.domain.users.import_file import MAX_FILE_BYTES, InvalidUserFile, LineProblem
from slotlock.domain.users.import_plan import ImportBusy, ImportTooLarge
from slotlock.domain.users.user import Role, User
from slotlock.infrastructure.mongo.client import connect
from slotlock.infrastructure.mongo.users.repository import UserRepository
from slotlock.infrastructure.mongo.users.sessions import SessionRepository
from slotlock.services.container import utc_now


class CommandError(Exception):
    """What was asked cannot be done; the text says why."""


async def check_backends(settings: Settings) -> None:
    """Check that MongoDB can be what bookings need. Errors: OperatorError."""
    client, database = connect(settings.mongo_url or "")
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
    client, database = connect(settings.mongo_url or "")
    passwords = PasswordHasher()
    try:
        users, sessions = UserRepository(database), SessionRepository(database)
        await users.create_indexes()
        # No session is opened here, so nothing is ever signed with this key.
        tokens = TokenSigner(["-" * MIN_SECRET_BYTES])
        yield Auth(users, sessions, passwords, tokens, utc_now, NoLoginThrottle())
    finally:
        passwords.close()
        await client.close()


async def import_users_file(settings: Settings, file: Path, *, dry_run: bool) -> str:
    """Make people as a file says, or only tell what that would do. Errors: OperatorError."""
    try:
        with file.open("rb") as opened:
            body = opened.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise CommandError(f"{file} cannot be read ({error.strerror})") from None
    if len(body) > MAX_FILE_BYTES:
        raise CommandError(f"{file} has more than {MAX_FILE_BYTES} bytes; split it")
    async with open_auth(settings) as auth:
        outcome = await import_users(auth, body, dry_run=dry_run)
    if isinstance(outcome, InvalidUserFile):
        raise CommandError(
            "\n".join(map(_format_problem, outcome.problems)) + _unlisted_problems(outcome)
        )
    if isinstance(outcome, ImportBusy):
        raise CommandError("others are changing these people; nothing was imported, try again")
    if isinstance(outcome, ImportTooLarge):
        raise CommandError("too much for one import; nothing was imported, split the file")
    counts = f"{outcome.created} created, {outcome.updated} updated, {outcome.unchanged} unchanged"
    return f"would be: {counts}" if dry_run else counts


async def print_invitations(settings: Settings, group: str | None) -> None:
    """Print new invitations for all who never set a password, as CSV. Errors: OperatorError."""
    if group is not None:
        if problem := validate_group(group):
            raise CommandError(f"--group: {problem}")
        (group,) = clean_groups([group])
    async with open_auth(settings) as auth:
        async for line in invitation_csv_lines(invite(auth, group, tuple(Role))):
            print(line.rstrip("\r\n"))


def _format_problem(problem: LineProblem) -> str:
    where = f"line {problem.line}" + (f", {problem.column}" if problem.column else "")
    return f"{where}: {problem.message}"


def _unlisted_problems(invalid_file: InvalidUserFile) -> str:
    left = invalid_file.count - len(invalid_file.problems)
    return f"\nand {left} more" if left else ""
