"""The command line: the commands of `slotlock` and their arguments."""

import argparse
import asyncio
import getpass
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pymongo.errors import PyMongoError

from slotlock import __version__
from slotlock.api.server.serve import ListenError, base_url, bind, serve, serve_from_processes
from slotlock.api.settings.settings import (
    Settings,
    SettingsError,
    read_settings,
    require,
    settings_page,
)
from slotlock.api.telemetry.traces import TracingUnavailableError, check_tracing
from slotlock.cli.backends import CommandError, check_mongodb
from slotlock.cli.backup import add_backup_commands, backup, restore
from slotlock.cli.deployment import stopped_deployment, with_deployment
from slotlock.cli.doctor.command import examine
from slotlock.cli.migrate import migrate
from slotlock.cli.queue import discard, requeue, show_queue
from slotlock.cli.simulate import find_target
from slotlock.cli.users import (
    create_reset,
    create_user,
    erase_user,
    import_users_file,
    list_users,
    print_invitations,
    set_password,
    set_role,
)
from slotlock.devserver.binaries import ServerStartError
from slotlock.domain.users.user import Role
from slotlock.infrastructure.mongo.indexes.builder import BUILD_DEADLINE_S
from slotlock.simulation.command import add_simulate_command, run_simulate_command
from slotlock.simulation.model.plan import MissingPackagesError

ERRORS = (
    SettingsError,
    ListenError,
    ServerStartError,
    CommandError,
    MissingPackagesError,
    TracingUnavailableError,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code; an error prints its reason on stderr."""
    args = _parser().parse_args(arguments)
    try:
        return _run_command(args)
    except BrokenPipeError:  # the reader of stdout has closed it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except ERRORS as error:
        for line in str(error).splitlines():
            print(f"slotlock: {line}", file=sys.stderr)
    except PyMongoError as error:
        reason = str(error).partition(" (")[0]
        print(f"slotlock: MongoDB (SLOTLOCK_MONGO_URL) is unavailable: {reason}", file=sys.stderr)
    except KeyboardInterrupt:
        return 130
    return 1


def _run_command(args: argparse.Namespace) -> int:
    code = int(args.run(args) or 0)
    sys.stdout.flush()
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="slotlock", description="Time-slot reservations, live.")
    parser.add_argument("--version", action="version", version=f"slotlock {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    dev = commands.add_parser("dev", help="run everything on this machine, with embedded servers")
    dev.set_defaults(run=_dev)

    production = commands.add_parser("serve", help="run the app for production")
    production.add_argument(
        "--workers",
        type=_parse_worker_count,
        default=1,
        metavar="N",
        help="server processes, default 1",
    )
    production.set_defaults(run=_serve)

    worker = commands.add_parser("worker", help="serve the admission queue only")
    worker.set_defaults(run=_worker)

    migrating = commands.add_parser("migrate", help="build the indexes that the database lacks")
    migrating.add_argument(
        "--deadline",
        type=_parse_minutes,
        default=BUILD_DEADLINE_S / 60,
        metavar="MINUTES",
        help="give up after this time, default a day",
    )
    migrating.set_defaults(run=_migrate)

    doctor = commands.add_parser("doctor", help="check settings, MongoDB, Redis, clocks and limits")
    doctor.set_defaults(run=_doctor)
    backing_up, restoring = add_backup_commands(commands)
    backing_up.set_defaults(run=_backup)
    restoring.set_defaults(run=_restore)

    _add_users_commands(commands)
    _add_queue_commands(commands)
    add_simulate_command(commands).set_defaults(run=_simulate)
    commands.add_parser("schema", help="print the GraphQL schema").set_defaults(run=_print_schema)
    commands.add_parser("settings", help="print the reference page of the settings").set_defaults(
        run=_print_settings
    )
    return parser


def _add_users_commands(commands: Any) -> None:
    users = commands.add_parser("users", help="manage accounts").add_subparsers(
        required=True, metavar="ACTION"
    )
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
    importing.set_defaults(run=_import_users)

    inviting = users.add_parser("invite", help="print tokens for users without a password")
    inviting.add_argument("--group", help="only for users in this group")
    inviting.set_defaults(run=_invite_users)


def _add_queue_commands(commands: Any) -> None:
    queue = commands.add_parser("queue", help="manage the admission queue").add_subparsers(
        required=True, metavar="ACTION"
    )
    queue.add_parser("show", help="print queue lengths and dead letters").set_defaults(
        run=_show_queue
    )

    requeuing = queue.add_parser("requeue", help="put dead letters back into the queue")
    requeuing.add_argument("entry", nargs="?", help="a name from `show`; default: all")
    requeuing.set_defaults(run=_requeue)

    discarding = queue.add_parser("discard", help="delete a dead letter; its ticket is LOST then")
    discarding.add_argument("entry", help="a name from `show`")
    discarding.set_defaults(run=_discard)


def _parse_worker_count(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 64:
        raise argparse.ArgumentTypeError("a number from 1 to 64")
    return int(text)


def _parse_minutes(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 100_000:
        raise argparse.ArgumentTypeError("a number of minutes from 1 to 100000")
    return int(text)


def _dev(args: argparse.Namespace) -> int:
    from slotlock.devserver.run import run_dev  # needs modules that production does not load

    return run_dev(read_settings())


def _serve(args: argparse.Namespace) -> int:
    settings = read_settings()
    require(settings, "mongo_url", "redis_url", "secret_key")
    if settings.admin_email is not None:
        require(settings, "admin_password")
    check_tracing()
    asyncio.run(check_mongodb(settings))
    from slotlock.api.app import build_app

    with bind(settings.host, settings.port) as bound:
        if args.workers > 1:
            address = f"{base_url(settings)} with {args.workers} server processes"
            print(f"listening on {address}", flush=True)
            factory = "slotlock.api.app:create_app"
            return 0 if serve_from_processes(settings, bound, factory, args.workers) else 1
        address = base_url(settings)
        app = build_app(settings, development=False)
        return 0 if serve(settings, bound, app, lambda: print(f"listening on {address}")) else 1


def _worker(args: argparse.Namespace) -> int:
    settings = with_deployment(read_settings(), "mongo_url", "redis_url")
    check_tracing()
    asyncio.run(check_mongodb(settings))
    from slotlock.cli.worker import run_worker

    return run_worker(settings)


def _migrate(args: argparse.Namespace) -> None:
    settings = _user_command_settings()
    asyncio.run(check_mongodb(settings))
    print(asyncio.run(migrate(settings, args.deadline * 60)))


def _doctor(args: argparse.Namespace) -> int:
    return asyncio.run(examine())


def _backup(args: argparse.Namespace) -> None:
    settings = _user_command_settings()
    asyncio.run(check_mongodb(settings))
    print(asyncio.run(backup(settings, args.file)))


def _restore(args: argparse.Namespace) -> None:
    with stopped_deployment(read_settings()) as settings:
        asyncio.run(check_mongodb(settings))
        print(asyncio.run(restore(settings, args.file, replace=args.replace)))


def _simulate(args: argparse.Namespace) -> int:
    return run_simulate_command(args, find_target)


def _user_command_settings() -> Settings:
    return with_deployment(read_settings(), "mongo_url")


def _create_user(args: argparse.Namespace) -> None:
    password = _read_password(args)
    name = args.name or args.email.partition("@")[0]
    print(asyncio.run(create_user(_user_command_settings(), name, args.email, password, args.role)))


def _read_password(args: argparse.Namespace) -> str:
    if args.password_stdin:
        return sys.stdin.readline().rstrip("\n")
    try:
        return getpass.getpass("Password: ")
    except EOFError:
        raise CommandError("no password; --password-stdin reads one from stdin") from None


def _set_password(args: argparse.Namespace) -> None:
    settings, password = _user_command_settings(), _read_password(args)
    print(asyncio.run(set_password(settings, args.email, password)))


def _create_reset(args: argparse.Namespace) -> None:
    print(asyncio.run(create_reset(_user_command_settings(), args.email)))


def _delete_user(args: argparse.Namespace) -> None:
    settings = _user_command_settings()
    if not args.yes:
        question = f"Erase {args.email}? This cannot be undone. Type the address again: "
        print(question, end="", file=sys.stderr, flush=True)
        if sys.stdin.readline().strip() != args.email:
            raise CommandError("not confirmed; nothing was erased. --yes does not ask")
    print(asyncio.run(erase_user(settings, args.email)))


def _list_users(args: argparse.Namespace) -> None:
    for line in asyncio.run(list_users(_user_command_settings())):
        print(line)


def _set_role(args: argparse.Namespace) -> None:
    print(asyncio.run(set_role(_user_command_settings(), args.email, args.role)))


def _import_users(args: argparse.Namespace) -> None:
    print(asyncio.run(import_users_file(_user_command_settings(), args.file, dry_run=args.dry_run)))


def _invite_users(args: argparse.Namespace) -> None:
    asyncio.run(print_invitations(_user_command_settings(), args.group))


def _queue_command_settings() -> Settings:
    return with_deployment(read_settings(), "redis_url")


def _show_queue(args: argparse.Namespace) -> None:
    asyncio.run(show_queue(_queue_command_settings()))


def _requeue(args: argparse.Namespace) -> None:
    print(asyncio.run(requeue(_queue_command_settings(), args.entry)))


def _discard(args: argparse.Namespace) -> None:
    print(asyncio.run(discard(_queue_command_settings(), args.entry)))


def _print_schema(args: argparse.Namespace) -> None:
    from slotlock.graphql.schema.schema import schema

    print(schema.as_str())


def _print_settings(args: argparse.Namespace) -> None:
    print(settings_page(), end="")
