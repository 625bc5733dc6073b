"""The command line: what `slotlock` and its commands do."""

import argparse
import asyncio
import getpass
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from pymongo.errors import PyMongoError

from slotlock import __version__
from slotlock.api.binaries import CannotStart
from slotlock.api.operators import OperatorError, check_stores, create_user, list_users, set_role
from slotlock.api.people_operators import import_file, print_invitations
from slotlock.api.queue_operators import discard, print_queue, replay
from slotlock.api.server import ListenError, address_of, listen, serve, serve_by_workers
from slotlock.api.settings import Settings, SettingsError, read_settings, require, settings_table
from slotlock.api.simulation import command as simulation
from slotlock.domain.people import Role


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; 0 when it did what it should, 1 with a line on stderr when it could not."""
    asked = _parser().parse_args(arguments)
    try:
        return _ran(asked)
    except BrokenPipeError:  # whoever reads has read enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except (SettingsError, ListenError, CannotStart, OperatorError) as error:
        for line in str(error).splitlines():
            print(f"slotlock: {line}", file=sys.stderr)
    except PyMongoError as error:
        reason = str(error).partition(" (")[0]
        print(f"slotlock: MongoDB (SLOTLOCK_MONGO_URL) does not answer: {reason}", file=sys.stderr)
    except KeyboardInterrupt:
        return 130
    return 1


def _ran(asked: argparse.Namespace) -> int:
    code = int(asked.run(asked) or 0)
    sys.stdout.flush()
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="slotlock", description="Time-slot reservations, live.")
    parser.add_argument("--version", action="version", version=f"slotlock {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    dev = commands.add_parser("dev", help="run everything on this machine, on embedded servers")
    dev.set_defaults(run=_dev)

    production = commands.add_parser("serve", help="run the app for production")
    production.add_argument("--workers", type=_workers, default=1, metavar="N")
    production.set_defaults(run=_serve)

    worker = commands.add_parser("worker", help="serve the admission queue")
    worker.set_defaults(run=_worker)

    users = commands.add_parser("users", help="accounts, for operators").add_subparsers(
        required=True, metavar="ACTION"
    )
    create = users.add_parser("create", help="create an account; asks for the password")
    create.add_argument("email")
    create.add_argument("--name", help="else the part of the address before the @")
    create.add_argument("--role", type=Role, choices=list(Role), default=Role.MEMBER)
    create.add_argument("--password-stdin", action="store_true", help="read it from stdin")
    create.set_defaults(run=_create_user)
    users.add_parser("list", help="list all accounts").set_defaults(run=_list_users)
    role = users.add_parser("set-role", help="give an account another role")
    role.add_argument("email")
    role.add_argument("role", type=Role, choices=list(Role))
    role.set_defaults(run=_set_role)

    people = commands.add_parser("people", help="many people, for operators").add_subparsers(
        required=True, metavar="ACTION"
    )
    importing = people.add_parser("import", help="create and update people as a CSV file says")
    importing.add_argument("file", type=Path, help="columns email, name, groups (separated by ;)")
    importing.add_argument("--dry-run", action="store_true", help="only tell what it would do")
    importing.set_defaults(run=_import_people)
    inviting = people.add_parser("invite", help="print tokens for all who have no password yet")
    inviting.add_argument("--group", help="only for those who carry this group")
    inviting.set_defaults(run=_invite_people)

    queue = commands.add_parser("queue", help="the admission queue, for operators").add_subparsers(
        required=True, metavar="ACTION"
    )
    queue.add_parser("show", help="who is in line, what was set aside").set_defaults(run=_queue)
    back = queue.add_parser("replay", help="put what was set aside back in line")
    back.add_argument("entry", nargs="?", help="as `show` names it; all without")
    back.set_defaults(run=_replay)
    away = queue.add_parser("discard", help="forget what was set aside; its ticket is LOST")
    away.add_argument("entry", help="as `show` names it")
    away.set_defaults(run=_discard)

    simulation.add_command(commands)
    commands.add_parser("schema", help="print the GraphQL schema").set_defaults(run=_schema)
    commands.add_parser("settings", help="print the table of settings").set_defaults(run=_settings)
    return parser


def _workers(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 64:
        raise argparse.ArgumentTypeError("a number from 1 to 64")
    return int(text)


def _dev(asked: argparse.Namespace) -> int:
    from slotlock.api.dev import run_dev  # keeps what only development needs out of production

    return run_dev(read_settings())


def _serve(asked: argparse.Namespace) -> int:
    settings = read_settings()
    require(settings, "mongo_url", "redis_url", "secret_key")
    if settings.admin_email is not None:
        require(settings, "admin_password")
    asyncio.run(check_stores(settings))
    from slotlock.api.app import build_app

    with listen(settings) as bound:
        if asked.workers > 1:
            print(f"listening on {address_of(settings)} with {asked.workers} workers", flush=True)
            factory = "slotlock.api.app:create_app"
            return 0 if serve_by_workers(settings, bound, factory, asked.workers) else 1
        address = address_of(settings)
        app = build_app(settings, development=False)
        return 0 if serve(settings, bound, app, lambda: print(f"listening on {address}")) else 1


def _worker(asked: argparse.Namespace) -> int:
    settings = read_settings()
    require(settings, "mongo_url", "redis_url")
    asyncio.run(check_stores(settings))
    from slotlock.api.worker import run_worker

    return run_worker(settings)


def _operator_settings() -> Settings:
    settings = read_settings()
    require(settings, "mongo_url")
    return settings


def _create_user(asked: argparse.Namespace) -> None:
    if asked.password_stdin:
        password = sys.stdin.readline().rstrip("\n")
    else:
        try:
            password = getpass.getpass("Password: ")
        except EOFError:
            raise OperatorError("no password was given; --password-stdin reads one") from None
    name = asked.name or asked.email.partition("@")[0]
    print(asyncio.run(create_user(_operator_settings(), name, asked.email, password, asked.role)))


def _list_users(asked: argparse.Namespace) -> None:
    for line in asyncio.run(list_users(_operator_settings())):
        print(line)


def _set_role(asked: argparse.Namespace) -> None:
    print(asyncio.run(set_role(_operator_settings(), asked.email, asked.role)))


def _import_people(asked: argparse.Namespace) -> None:
    print(asyncio.run(import_file(_operator_settings(), asked.file, dry_run=asked.dry_run)))


def _invite_people(asked: argparse.Namespace) -> None:
    asyncio.run(print_invitations(_operator_settings(), asked.group))


def _queue_settings() -> Settings:
    settings = read_settings()
    require(settings, "redis_url")
    return settings


def _queue(asked: argparse.Namespace) -> None:
    asyncio.run(print_queue(_queue_settings()))


def _replay(asked: argparse.Namespace) -> None:
    print(asyncio.run(replay(_queue_settings(), asked.entry)))


def _discard(asked: argparse.Namespace) -> None:
    print(asyncio.run(discard(_queue_settings(), asked.entry)))


def _schema(asked: argparse.Namespace) -> None:
    from slotlock.graphql.schema import schema

    print(schema.as_str())


def _settings(asked: argparse.Namespace) -> None:
    print(settings_table(), end="")
