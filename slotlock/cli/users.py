"""Commands for accounts, which work on MongoDB without a running app."""

import asyncio
import getpass
import json
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from slotlock.api.endpoints.invitation_csv import invitation_csv_lines
from slotlock.api.settings.settings import Settings
from slotlock.auth import accounts
from slotlock.auth.accounts import EmailTaken
from slotlock.auth.administration import account_admin
from slotlock.auth.container import Auth, build_auth
from slotlock.auth.invitations import create_password_reset, invite
from slotlock.auth.login_throttle import NoLoginThrottle
from slotlock.auth.passwords import PasswordHasher
from slotlock.auth.tokens import MIN_SECRET_BYTES, TokenSigner
from slotlock.auth.user_import import import_users
from slotlock.cli.backends import CommandError, confirm
from slotlock.cli.deployment import settings_with_mongodb
from slotlock.domain.booking.refusals import UserNotFound
from slotlock.domain.reports.exports import CsvSeparator
from slotlock.domain.shared.text import normalize_line
from slotlock.domain.shared.validation import InvalidInput
from slotlock.domain.users.administration import LastAdmin
from slotlock.domain.users.email_addresses import normalize_email
from slotlock.domain.users.groups import validate_group
from slotlock.domain.users.import_file import MAX_FILE_BYTES, InvalidUserFile, LineProblem
from slotlock.domain.users.import_plan import ImportBusy, ImportTooLarge
from slotlock.domain.users.user import Role, User
from slotlock.graphql.times import format_time
from slotlock.infrastructure.mongo.client import connect
from slotlock.infrastructure.mongo.clock import mongo_clock
from slotlock.infrastructure.mongo.repositories import repositories_on

# What the user of a reset token sends; slotlock has no page for it.
RESET_MUTATION = (
    "mutation ($token: String!, $password: String!) { setPassword(token: $token, "
    "password: $password) { __typename ... on Refusal { code message } } }"
)


def define_users(parser: ArgumentParser) -> None:
    """Add the actions of `slotlock users`."""
    users = parser.add_subparsers(required=True, metavar="ACTION", parser_class=ArgumentParser)
    create = users.add_parser("create", help="create an account; asks for the password")
    create.add_argument("email")
    create.add_argument("--name", help="default: the part of the address before the @")
    create.add_argument("--role", type=Role, choices=list(Role), default=Role.MEMBER)
    create.add_argument(
        "--password-stdin", action="store_true", help="read the password from stdin"
    )
    create.set_defaults(run=_create_user)

    users.add_parser("list", help="list all accounts").set_defaults(run=_list_users)

    role = users.add_parser("set-role", help="change the role of an account")
    role.add_argument("email")
    role.add_argument("role", type=Role, choices=list(Role))
    role.set_defaults(run=_set_role)

    password = users.add_parser("set-password", help="set a password; ends all sessions")
    password.add_argument("email")
    password.add_argument(
        "--password-stdin", action="store_true", help="read the password from stdin"
    )
    password.set_defaults(run=_set_password)

    reset = users.add_parser(
        "reset-link", help="print a token that replaces a password, and its request"
    )
    reset.add_argument("email")
    reset.set_defaults(run=_create_reset)

    deletion = users.add_parser("delete", help="erase an account and cancel its future bookings")
    deletion.add_argument("email")
    deletion.add_argument("--yes", action="store_true", help="do not ask for confirmation")
    deletion.set_defaults(run=_delete_user)

    importing = users.add_parser("import", help="create and update users from a CSV file")
    importing.add_argument("file", type=Path, help="columns email, name, groups (separated by ;)")
    importing.add_argument("--dry-run", action="store_true", help="only count the changes")
    importing.add_argument(
        "--claim", action="store_true", help="take over accounts that registered themselves"
    )
    importing.set_defaults(run=_import_users)

    inviting = users.add_parser("invite", help="print tokens for users without a password")
    inviting.add_argument("--group", help="only for users in this group")
    inviting.add_argument(
        "--separator",
        choices=list(CsvSeparator),
        type=CsvSeparator,
        default=CsvSeparator.COMMA,
        help="what separates the cells",
    )
    inviting.set_defaults(run=_invite_users)


def _create_user(args: Namespace) -> None:
    password = _read_password(args)
    name = args.name or args.email.partition("@")[0]
    print(asyncio.run(create_user(settings_with_mongodb(), name, args.email, password, args.role)))


def _read_password(args: Namespace) -> str:
    if args.password_stdin:
        return sys.stdin.readline().rstrip("\n")
    try:
        return getpass.getpass("Password: ")
    except EOFError:
        raise CommandError("no password; --password-stdin reads one from stdin") from None


def _set_password(args: Namespace) -> None:
    settings, password = settings_with_mongodb(), _read_password(args)
    print(asyncio.run(set_password(settings, args.email, password)))


def _create_reset(args: Namespace) -> None:
    print(asyncio.run(create_reset(settings_with_mongodb(), args.email)))


def _delete_user(args: Namespace) -> None:
    settings = settings_with_mongodb()
    if not args.yes:
        confirm(f"erasing {args.email} cannot be undone", args.email)
    print(asyncio.run(erase_user(settings, args.email)))


def _list_users(args: Namespace) -> None:
    for line in asyncio.run(list_users(settings_with_mongodb())):
        print(line)


def _set_role(args: Namespace) -> None:
    print(asyncio.run(set_role(settings_with_mongodb(), args.email, args.role)))


def _import_users(args: Namespace) -> None:
    importing = import_users_file(
        settings_with_mongodb(), args.file, dry_run=args.dry_run, claim=args.claim
    )
    print(asyncio.run(importing))


def _invite_users(args: Namespace) -> None:
    asyncio.run(print_invitations(settings_with_mongodb(), args.group, args.separator))


@asynccontextmanager
async def open_auth(settings: Settings) -> AsyncIterator[Auth]:
    """Open the accounts in MongoDB, with their indexes."""
    client, database = connect(settings.mongo_url or "")
    passwords = PasswordHasher()
    try:
        repositories = repositories_on(database)
        await repositories.indexes.create_on_empty()
        # No command opens a session, so this key never signs a token.
        tokens = TokenSigner(["-" * MIN_SECRET_BYTES])
        async with mongo_clock(database, settings.max_clock_skew_s) as clock:
            yield build_auth(repositories, passwords, tokens, clock.now, NoLoginThrottle())
    finally:
        passwords.close()
        await client.close()


async def create_user(settings: Settings, name: str, email: str, password: str, role: Role) -> str:
    """Create an account and return the line to print; raises CommandError."""
    async with open_auth(settings) as auth:
        match await accounts.create_user(auth, name, email, password, role):
            case User() as user:
                return f"created {_format_user(user)}"
            case EmailTaken():
                raise CommandError(f"{email} already has an account")
            case InvalidInput() as invalid:
                text = " ".join(f"{p.field}: {p.message}" for p in invalid.problems)
                raise CommandError(text)
            case busy:
                raise CommandError(f"busy: {busy}")


async def list_users(settings: Settings) -> list[str]:
    """Return a line for each account, ordered by e-mail address."""
    async with open_auth(settings) as auth:
        return [_format_user(user) async for user in auth.users.find_all()]


async def set_role(settings: Settings, email: str, role: Role) -> str:
    """Change the role of an account, also in its open sessions; raises CommandError."""
    async with open_auth(settings) as auth:
        user = await _find_user(auth, email)
        match await account_admin.set_role(auth, None, user.id, role):
            case User() as changed:
                return f"now {_format_user(changed)}"
            case LastAdmin():
                raise CommandError(_last_admin_text(email))
            case UserNotFound():
                raise CommandError(f"no account has the address {email}")


async def set_password(settings: Settings, email: str, password: str) -> str:
    """Set the password of an account and end its sessions; raises CommandError."""
    async with open_auth(settings) as auth:
        user = await _find_user(auth, email)
        match await account_admin.replace_password(auth, user.id, password):
            case None:
                return f"set the password of {user.email}; all sessions ended"
            case InvalidInput() as invalid:
                raise CommandError(" ".join(problem.message for problem in invalid.problems))
            case refused:
                raise CommandError(f"the password was not set: {refused}")


async def create_reset(settings: Settings, email: str) -> str:
    """Return a token that replaces a password once, and how to use it; raises CommandError."""
    async with open_auth(settings) as auth:
        user = await _find_user(auth, email)
        reset = await create_password_reset(auth, user)
    if reset is None:
        raise CommandError(f"{email} is banned")
    lines = {
        "token": reset.token,
        "expires": format_time(reset.expires_at),
        "request": _set_password_request(settings, reset.token),
    }
    return "\n".join(f"{name}\t{text}" for name, text in lines.items())


def _set_password_request(settings: Settings, token: str) -> str:
    """Return the request that uses the token, as a command for a shell."""
    variables = {"token": token, "password": "NEW-PASSWORD"}
    body = json.dumps({"query": RESET_MUTATION, "variables": variables})
    server = f"{settings.public_url}/graphql" if settings.public_url else '"$SERVER/graphql"'
    return f"curl -sS {server} -H 'content-type: application/json' -d '{body}'"


async def erase_user(settings: Settings, email: str) -> str:
    """Erase an account; a running server does the rest. Raises CommandError."""
    async with open_auth(settings) as auth:
        user = await _find_user(auth, email)
        outcome = await auth.erasures.erase_account(user.id, None, auth.now())
    if isinstance(outcome, LastAdmin):
        raise CommandError(_last_admin_text(email))
    return (
        f"erased the account {user.email}; "
        "the running server cancels its future bookings within seconds"
    )


async def _find_user(auth: Auth, email: str) -> User:
    found = await auth.users.find_with_password_hash(normalize_email(email) or "")
    if found is None or found[0].erased:
        raise CommandError(f"no account has the address {email}")
    return found[0]


def _last_admin_text(email: str) -> str:
    return f"{email} is the last admin; make another user an admin first"


def _format_user(user: User) -> str:
    return f"{user.email}\t{user.role.value}\t{user.name}\t{user.created_at:%Y-%m-%d}"


async def import_users_file(
    settings: Settings, file: Path, *, dry_run: bool, claim: bool = False
) -> str:
    """Create and update users from a CSV file, or only count the changes; raises CommandError."""
    try:
        with file.open("rb") as opened:
            body = opened.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise CommandError(f"{file} cannot be read ({error.strerror})") from None
    if len(body) > MAX_FILE_BYTES:
        raise CommandError(f"{file} has more than {MAX_FILE_BYTES} bytes; split it")
    async with open_auth(settings) as auth:
        outcome = await import_users(auth, body, dry_run=dry_run, claim=claim)
    match outcome:
        case InvalidUserFile():
            problems = "\n".join(map(_format_problem, outcome.problems))
            raise CommandError(problems + _unlisted_problems(outcome))
        case ImportBusy():
            raise CommandError("others are changing these users; nothing was imported, try again")
        case ImportTooLarge():
            raise CommandError("too much for one import; nothing was imported, split the file")
    counts = f"{outcome.created} created, {outcome.updated} updated, {outcome.unchanged} unchanged"
    if outcome.claimed:
        counts += f", {outcome.claimed} claimed"
    lines = [f"would be: {counts}" if dry_run else counts]
    for account in outcome.unclaimed:
        user = account.user
        lines.append(
            f"line {account.line}: {user.email} registered as {user.name} on "
            f"{user.created_at:%Y-%m-%d} and did not change; --claim takes the account over"
        )
    return "\n".join(lines)


async def print_invitations(
    settings: Settings, group: str | None, separator: CsvSeparator = CsvSeparator.COMMA
) -> None:
    """Print new invitations, as CSV, for all users without a password; raises CommandError."""
    if group is not None:
        group = normalize_line(group)
        if problem := validate_group(group):
            raise CommandError(f"--group: {problem}")
    async with open_auth(settings) as auth:
        async for line in invitation_csv_lines(invite(auth, group, tuple(Role)), separator):
            # UTF-8 and the line ends of CSV, whatever the terminal has.
            sys.stdout.buffer.write(line.encode())
            sys.stdout.buffer.flush()


def _format_problem(problem: LineProblem) -> str:
    location = f"line {problem.line}" + (f", {problem.column}" if problem.column else "")
    return f"{location}: {problem.message}"


def _unlisted_problems(invalid_file: InvalidUserFile) -> str:
    unlisted = invalid_file.count - len(invalid_file.problems)
    return f"\nand {unlisted} more" if unlisted else ""
