"""Commands for accounts, which work on MongoDB without a running app."""

import asyncio
import getpass
import sys
import warnings
from argparse import Namespace
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TypeVar

from slotlock.api.endpoints.csv_files import (
    INVITATION_VIEW,
    PRINTED_COLUMNS,
    invitation_csv_lines,
)
from slotlock.api.settings.settings import Settings
from slotlock.auth import accounts
from slotlock.auth.accounts import EmailTaken
from slotlock.auth.admin import account_admin, groups_and_bans
from slotlock.auth.container import Auth
from slotlock.auth.invitations import create_password_reset, invite
from slotlock.auth.passwords import PasswordHasher
from slotlock.auth.tokens import MIN_SECRET_BYTES, TokenSigner
from slotlock.cli.commands.table import Row
from slotlock.cli.deployment import (
    CommandError,
    confirm,
    find_address,
    settings_with_mongodb,
)
from slotlock.domain.booking.booking_refusals import UserNotFound
from slotlock.domain.shared.text import normalize_line
from slotlock.domain.shared.validation import InvalidInput
from slotlock.domain.users.account_admin_rules import LastAdmin, SelfRegistered
from slotlock.domain.users.email_addresses import normalize_login_name
from slotlock.domain.users.groups import similar_groups, validate_group
from slotlock.domain.users.user import Role, User
from slotlock.infrastructure.mongo.client import connect
from slotlock.infrastructure.mongo.clock import mongo_clock
from slotlock.infrastructure.mongo.indexes.index_builder import IndexBuilder
from slotlock.infrastructure.mongo.users.account_repositories import (
    ACCOUNT_INDEXES,
    AccountRepositories,
)

Result = TypeVar("Result")


def with_auth(act: Callable[[Auth], Awaitable[Result]], settings: Settings | None = None) -> Result:
    """Do something with the accounts in the database of the settings."""

    async def run(settings: Settings) -> Result:
        async with open_auth(settings) as auth:
            return await act(auth)

    return asyncio.run(run(settings or settings_with_mongodb()))


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


def list_users(args: Namespace) -> list[Row]:
    """Return all accounts."""

    async def find(auth: Auth) -> list[Row]:
        return [
            (
                *("" if each.has_made_login_name else each.login_name, each.role, each.name),
                *(each.groups, each.created_at, each.banned_at),
            )
            async for each in auth.repositories.users.find_all()
        ]

    return with_auth(find)


def show_user(args: Namespace) -> Row:
    """Return all that operators may know of an account."""

    async def find(auth: Auth) -> Row:
        user = await _find_user(auth, args.login_name)
        booked = await auth.repositories.user_imports.find_future_bookings([user], auth.now())
        return (
            f"user_{user.id}", user.login_name, user.role, user.name, user.groups, user.created_at,
            user.has_password, user.signs_in_at_provider, user.email_verified,
            user.self_registered, user.undeliverable_since, user.banned_at, user.ban_reason,
            len(booked.get(user.id, [])),
        )  # fmt: skip

    return with_auth(find)


def create_user(args: Namespace) -> str:
    """Create an account with a password."""
    settings, password = settings_with_mongodb(), _read_password(args)
    name = args.name or args.login_name.partition("@")[0]

    async def create(auth: Auth) -> str:
        match await accounts.create_user(auth, name, args.login_name, password, args.role):
            case User() as user:
                return f"created {user.login_name}, {user.role.value}"
            case EmailTaken():
                raise CommandError(f"{args.login_name} already has an account")
            case InvalidInput() as invalid:
                raise CommandError(" ".join(f"{p.field}: {p.message}" for p in invalid.problems))

    return with_auth(create, settings)


def set_role(args: Namespace) -> str:
    """Change the role of an account, also in its open sessions."""

    async def change(auth: Auth) -> str:
        user = await _find_user(auth, args.login_name)
        match await account_admin.set_role(auth, None, user.id, args.role, vouches=args.vouch):
            case User() as changed:
                return f"{changed.login_name} has the role {changed.role.value}"
            case LastAdmin():
                raise _last_admin(user)
            case SelfRegistered():
                raise CommandError(
                    f"{user.login_name} registered as {user.name} on {user.created_at:%Y-%m-%d}, "
                    "and nobody has vouched for them yet; --vouch does"
                )
            case InvalidInput() as invalid:
                raise CommandError(" ".join(problem.message for problem in invalid.problems))
            case UserNotFound():
                raise _unknown(args.login_name)

    return with_auth(change)


def set_password(args: Namespace) -> str:
    """Set the password of an account, and end its sessions."""
    settings, password = settings_with_mongodb(), _read_password(args)

    async def replace_password(auth: Auth) -> str:
        user = await _find_user(auth, args.login_name)
        match await account_admin.replace_password(auth, user.id, password):
            case None:
                return f"set the password of {user.login_name}; all sessions ended"
            case InvalidInput() as invalid:
                raise CommandError(" ".join(problem.message for problem in invalid.problems))
            case UserNotFound():
                raise _unknown(args.login_name)

    return with_auth(replace_password, settings)


def _read_password(args: Namespace) -> str:
    """Read a password from stdin, or ask for it twice on a terminal."""
    if args.password_stdin:
        return sys.stdin.readline().rstrip("\n")
    with warnings.catch_warnings():
        # Without a terminal, it would read a password that everybody sees.
        warnings.simplefilter("error", getpass.GetPassWarning)
        try:
            password = getpass.getpass("Password: ")
            repeated = getpass.getpass("The same password again: ")
        except (EOFError, getpass.GetPassWarning):
            raise CommandError(
                "no terminal that asks for a password; --password-stdin reads one from stdin"
            ) from None
    if password != repeated:
        raise CommandError("the two passwords differ; nothing was changed")
    return password


def create_reset(args: Namespace) -> Row:
    """Return a link that replaces a password once, and its end."""
    settings = settings_with_mongodb()
    page = _page(settings, args)

    async def create(auth: Auth) -> Row:
        reset = await create_password_reset(auth, await _find_user(auth, args.login_name))
        if reset is None:
            raise CommandError(f"{args.login_name} is banned")
        return page + reset.token, reset.expires_at

    return with_auth(create, settings)


def _page(settings: Settings, args: Namespace) -> str:
    """Return the address of the page that sets a password, whose end is a token."""
    if args.page is not None:
        return str(args.page)
    address = find_address(settings)
    if address is None:
        raise CommandError("SLOTLOCK_PUBLIC_URL is not set, with which links begin")
    if not settings.board:
        raise CommandError("SLOTLOCK_BOARD is off: --page names the page of a client of your own")
    return f"{address}/board{INVITATION_VIEW}"


def invite_users(args: Namespace) -> None:
    """Print new invitations, as CSV, for all users without a password."""
    settings = settings_with_mongodb()
    page, group = _page(settings, args), args.group
    if group is not None:
        group = normalize_line(group)
        if problem := validate_group(group):
            raise CommandError(f"--group: {problem}")

    async def print_lines(auth: Auth) -> None:
        if group is not None:
            known = await auth.repositories.user_imports.find_groups()
            for each in similar_groups([group], known):
                print(f"perhaps one group: {', '.join(each)}", file=sys.stderr)
        invitations = invite(auth, group, tuple(Role))
        lines = invitation_csv_lines(invitations, args.separator, page, PRINTED_COLUMNS)
        async for line in lines:
            # UTF-8 and the line ends of CSV, whatever the terminal has.
            sys.stdout.buffer.write(line.encode())
            sys.stdout.buffer.flush()

    with_auth(print_lines, settings)


def ban_user(args: Namespace) -> str:
    """Ban a user."""

    async def ban(auth: Auth) -> str:
        user = await _find_user(auth, args.login_name)
        match await groups_and_bans.ban_by_operator(auth, user.id, args.reason):
            case User():
                return f"banned {user.login_name}; all sessions ended"
            case InvalidInput() as invalid:
                raise CommandError(f"--reason: {invalid.problems[0].message}")
            case LastAdmin():
                raise _last_admin(user)
            case UserNotFound():
                raise _unknown(args.login_name)

    return with_auth(ban)


def unban_user(args: Namespace) -> str:
    """Lift the ban of a user."""

    async def unban(auth: Auth) -> str:
        user = await _find_user(auth, args.login_name)
        await groups_and_bans.unban(auth, None, user.id)
        return f"{user.login_name} is not banned"

    return with_auth(unban)


def delete_user(args: Namespace) -> str:
    """Erase an account; a running server does the rest."""
    settings = settings_with_mongodb()

    async def left_children(auth: Auth) -> str:
        user = await _find_user(auth, args.login_name)
        dependents = await auth.repositories.users.find_dependents([user.id])
        names = ", ".join(each.name for each in dependents if each.guardians == (user.id,))
        return f", and leaves {names} without a guardian" if names else ""

    if not args.yes:
        left = with_auth(left_children, settings)
        confirm(f"erasing {args.login_name} cannot be undone{left}", args.login_name)

    async def erase(auth: Auth) -> str:
        user = await _find_user(auth, args.login_name)
        outcome = await auth.repositories.erasures.erase_account(user.id, None, auth.now())
        if isinstance(outcome, LastAdmin):
            raise _last_admin(user)
        return (
            f"erased the account {user.login_name}; "
            "the running server cancels its future bookings within seconds"
        )

    return with_auth(erase, settings)


async def _find_user(auth: Auth, login_name: str) -> User:
    normalized = normalize_login_name(login_name)
    found = await auth.repositories.users.find_with_password_hash(normalized or "")
    if found is None or found[0].erased:
        raise _unknown(login_name)
    return found[0]


def _unknown(login_name: str) -> CommandError:
    return CommandError(f"no account has the address or user name {login_name}")


def _last_admin(user: User) -> CommandError:
    return CommandError(f"{user.login_name} is the last admin; make another user an admin first")
