"""Commands for accounts, which work on MongoDB without a running app."""

import asyncio
import getpass
import json
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

from slotlock.api.endpoints.csv_files import invitation_csv_lines
from slotlock.api.settings.settings import Settings
from slotlock.auth import accounts
from slotlock.auth.accounts import EmailTaken
from slotlock.auth.admin import account_admin
from slotlock.auth.container import Auth
from slotlock.auth.invitations import create_password_reset, invite
from slotlock.auth.passwords import PasswordHasher
from slotlock.auth.tokens import MIN_SECRET_BYTES, TokenSigner
from slotlock.cli.deployment import CommandError, confirm, settings_with_mongodb
from slotlock.cli.user_files import define_files
from slotlock.domain.booking.booking_refusals import UserNotFound
from slotlock.domain.reports.export_formats import CsvSeparator
from slotlock.domain.shared.text import normalize_line
from slotlock.domain.shared.validation import InvalidInput
from slotlock.domain.users.account_admin_rules import LastAdmin, SelfRegistered
from slotlock.domain.users.email_addresses import normalize_login_name
from slotlock.domain.users.groups import similar_groups, validate_group
from slotlock.domain.users.user import Role, User
from slotlock.graphql.times import format_time
from slotlock.infrastructure.mongo.client import connect
from slotlock.infrastructure.mongo.clock import mongo_clock
from slotlock.infrastructure.mongo.indexes.index_builder import IndexBuilder
from slotlock.infrastructure.mongo.users.account_repositories import (
    ACCOUNT_INDEXES,
    AccountRepositories,
)

LOGIN_NAME = "EMAIL_OR_USERNAME"
# What the user of a reset token sends; slotlock has no page for it.
RESET_MUTATION = (
    "mutation ($token: String!, $password: String!) { setPassword(token: $token, "
    "password: $password) { __typename ... on Refusal { code message } } }"
)


def define_users(parser: ArgumentParser) -> None:
    """Add the actions of `slotlock users`."""
    parser.set_defaults(run=_run, ask=None)
    users = parser.add_subparsers(required=True, metavar="ACTION", parser_class=ArgumentParser)
    create = users.add_parser("create", help="create an account; asks for the password")
    create.add_argument("login_name", metavar=LOGIN_NAME)
    create.add_argument(
        "--name", help="default: the user name, or the part of the address before the @"
    )
    create.add_argument("--role", type=Role, choices=list(Role), default=Role.MEMBER)
    create.set_defaults(action=_create_user)

    users.add_parser("list", help="list all accounts").set_defaults(action=_list_users)

    role = users.add_parser("set-role", help="change the role of an account")
    role.add_argument("login_name", metavar=LOGIN_NAME)
    role.add_argument("role", type=Role, choices=list(Role))
    role.add_argument(
        "--vouch", action="store_true", help="also of an account that somebody registered"
    )
    role.set_defaults(action=_set_role)

    password = users.add_parser("set-password", help="set a password; ends all sessions")
    password.add_argument("login_name", metavar=LOGIN_NAME)
    password.set_defaults(action=_set_password)

    for parser_with_password in (create, password):
        parser_with_password.add_argument(
            "--password-stdin", action="store_true", help="read the password from stdin"
        )
        parser_with_password.set_defaults(ask=_ask_for_password)

    reset = users.add_parser(
        "reset-link", help="print a token that replaces a password, and its request"
    )
    reset.add_argument("login_name", metavar=LOGIN_NAME)
    reset.set_defaults(action=_create_reset)

    deletion = users.add_parser("delete", help="erase an account and cancel its future bookings")
    deletion.add_argument("login_name", metavar=LOGIN_NAME)
    deletion.add_argument("--yes", action="store_true", help="do not ask for confirmation")
    deletion.set_defaults(action=_erase_user, ask=_ask_to_erase)

    define_files(users)

    inviting = users.add_parser("invite", help="print tokens for users without a password")
    inviting.add_argument("--group", help="only for users in this group")
    inviting.add_argument(
        "--separator",
        choices=list(CsvSeparator),
        type=CsvSeparator,
        default=CsvSeparator.COMMA,
        help="what separates the cells",
    )
    inviting.set_defaults(action=_invite_users)


def _run(args: Namespace) -> None:
    """Carry out an action on the accounts of the settings, and print what it returns.

    Each action takes the accounts and the arguments, and raises CommandError if it is refused.
    """
    settings = settings_with_mongodb()
    if args.ask is not None:
        args.ask(args)
    args.public_url = settings.public_url
    asyncio.run(_act(settings, args))


async def _act(settings: Settings, args: Namespace) -> None:
    async with open_auth(settings) as auth:
        text = await args.action(auth, args)
    if text is not None:
        print(text)


def _ask_for_password(args: Namespace) -> None:
    if args.password_stdin:
        args.password = sys.stdin.readline().rstrip("\n")
        return
    try:
        args.password = getpass.getpass("Password: ")
    except EOFError:
        raise CommandError("no password; --password-stdin reads one from stdin") from None


def _ask_to_erase(args: Namespace) -> None:
    if not args.yes:
        confirm(f"erasing {args.login_name} cannot be undone", args.login_name)


@asynccontextmanager
async def open_auth(settings: Settings) -> AsyncIterator[Auth]:
    """Open the accounts in MongoDB, with their indexes."""
    client, database = connect(settings.mongo_url or "")
    passwords = PasswordHasher()
    try:
        repositories = AccountRepositories(database)
        required = repositories.required_indexes
        await IndexBuilder(database, ACCOUNT_INDEXES, required).create_on_empty()
        # No command opens a session, so this key never signs a token.
        tokens = TokenSigner(["-" * MIN_SECRET_BYTES])
        async with mongo_clock(database, settings.max_clock_skew_s) as clock:
            auth = Auth(repositories, passwords, tokens, clock.now, login_throttle=None)
            if settings.providers is None:
                yield auth
                return
            from slotlock.api.settings.providers import read_providers
            from slotlock.auth.providers.connections import open_sign_on

            # A file of users names them; no command asks a provider.
            async with open_sign_on(read_providers(settings.providers), None) as sign_on:
                yield replace(auth, sign_on=sign_on)
    finally:
        passwords.close()
        await client.close()


async def _create_user(auth: Auth, args: Namespace) -> str:
    name = args.name or args.login_name.partition("@")[0]
    match await accounts.create_user(auth, name, args.login_name, args.password, args.role):
        case User() as user:
            return f"created {_format_user(user)}"
        case EmailTaken():
            raise CommandError(f"{args.login_name} already has an account")
        case InvalidInput() as invalid:
            raise CommandError(" ".join(f"{p.field}: {p.message}" for p in invalid.problems))


async def _list_users(auth: Auth, _args: Namespace) -> str | None:
    lines = [_format_user(user) async for user in auth.repositories.users.find_all()]
    return "\n".join(lines) or None


async def _set_role(auth: Auth, args: Namespace) -> str:
    """Change the role of an account, also in its open sessions."""
    user = await _find_user(auth, args.login_name)
    match await account_admin.set_role(auth, None, user.id, args.role, vouches=args.vouch):
        case User() as changed:
            return f"now {_format_user(changed)}"
        case LastAdmin():
            raise CommandError(_last_admin_text(args.login_name))
        case SelfRegistered():
            raise CommandError(
                f"{user.login_name} registered as {user.name} on {user.created_at:%Y-%m-%d}, and "
                "nobody has vouched for them yet; --vouch does"
            )
        case UserNotFound():
            raise CommandError(f"no account has the address or user name {args.login_name}")


async def _set_password(auth: Auth, args: Namespace) -> str:
    user = await _find_user(auth, args.login_name)
    match await account_admin.replace_password(auth, user.id, args.password):
        case None:
            return f"set the password of {user.login_name}; all sessions ended"
        case InvalidInput() as invalid:
            raise CommandError(" ".join(problem.message for problem in invalid.problems))
        case UserNotFound():
            raise CommandError(f"no account has the address or user name {args.login_name}")


async def _create_reset(auth: Auth, args: Namespace) -> str:
    """Return a token that replaces a password once, and a command for a shell that uses it."""
    reset = await create_password_reset(auth, await _find_user(auth, args.login_name))
    if reset is None:
        raise CommandError(f"{args.login_name} is banned")
    variables = {"token": reset.token, "password": "NEW-PASSWORD"}
    body = json.dumps({"query": RESET_MUTATION, "variables": variables})
    server = f"{args.public_url}/graphql" if args.public_url else '"$SERVER/graphql"'
    lines = {
        "token": reset.token,
        "expires": format_time(reset.expires_at),
        "request": f"curl -sS {server} -H 'content-type: application/json' -d '{body}'",
    }
    return "\n".join(f"{name}\t{text}" for name, text in lines.items())


async def _erase_user(auth: Auth, args: Namespace) -> str:
    """Erase an account; a running server does the rest."""
    user = await _find_user(auth, args.login_name)
    outcome = await auth.repositories.erasures.erase_account(user.id, None, auth.now())
    if isinstance(outcome, LastAdmin):
        raise CommandError(_last_admin_text(args.login_name))
    return (
        f"erased the account {user.login_name}; "
        "the running server cancels its future bookings within seconds"
    )


async def _find_user(auth: Auth, login_name: str) -> User:
    normalized = normalize_login_name(login_name)
    found = await auth.repositories.users.find_with_password_hash(normalized or "")
    if found is None or found[0].erased:
        raise CommandError(f"no account has the address or user name {login_name}")
    return found[0]


def _last_admin_text(login_name: str) -> str:
    return f"{login_name} is the last admin; make another user an admin first"


def _format_user(user: User) -> str:
    return f"{user.login_name}\t{user.role.value}\t{user.name}\t{user.created_at:%Y-%m-%d}"


async def _invite_users(auth: Auth, args: Namespace) -> None:
    """Print new invitations, as CSV, for all users without a password."""
    group = args.group
    if group is not None:
        group = normalize_line(group)
        if problem := validate_group(group):
            raise CommandError(f"--group: {problem}")
        for each in similar_groups([group], await auth.repositories.user_imports.find_groups()):
            print(f"perhaps one group: {', '.join(each)}", file=sys.stderr)
    async for line in invitation_csv_lines(invite(auth, group, tuple(Role)), args.separator):
        # UTF-8 and the line ends of CSV, whatever the terminal has.
        sys.stdout.buffer.write(line.encode())
        sys.stdout.buffer.flush()
