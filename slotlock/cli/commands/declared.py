"""All commands of `slotlock`. `make commands` writes docs/reference/commands.md from them."""

from argparse import ArgumentTypeError
from datetime import datetime
from pathlib import Path

from slotlock.cli.commands.command import Command, argument, number
from slotlock.domain.notifications.outbox import OutboxState
from slotlock.domain.reports.export_formats import CsvSeparator
from slotlock.domain.user_files.columns import ADDRESSES_OF
from slotlock.domain.users.user import Role

MAX_ENTRIES = 10_000


def _time(text: str) -> datetime:
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        time = None
    if time is None or time.tzinfo is None:
        raise ArgumentTypeError("a time with an offset, such as 2026-09-01T08:00+02:00")
    return time


LOGIN_NAME = argument(
    "login_name", metavar="EMAIL_OR_USERNAME", help="the address or user name of the account"
)
PASSWORD_STDIN = argument(
    "--password-stdin", action="store_true", help="read the password from stdin, and do not ask"
)
YES = argument("--yes", action="store_true", help="do not ask for confirmation")
PAGE = argument(
    "--page",
    metavar="URL",
    help="the page of a client of your own, to whose end the token is added; default: the board, "
    "at SLOTLOCK_PUBLIC_URL",
)
JSON = argument("--json", action="store_true", help="print JSON instead of lines")
APPLY = argument("--apply", action="store_true", help="write the changes; otherwise only show them")
USER_FILE = (
    argument("file", type=Path, help="CSV with columns such as email or username, name, groups"),
    APPLY,
    JSON,
    argument(
        "--claim",
        metavar="LINES",
        help="lock out who registered the accounts of these lines: all, or such as 7,9",
    ),
    argument(
        "--vouch",
        metavar="LINES",
        help="accept who registered the accounts of these lines: all, or such as 7,9",
    ),
    argument(
        "--addresses-of",
        choices=ADDRESSES_OF,
        default=ADDRESSES_OF[0],
        help="whose the email addresses are: of the users, or of their parents; default: users",
    ),
)
FILE_EXIT_CODES = {1: "The file has problems, or MongoDB is unavailable: nothing was changed."}

USERS = {
    "list": Command(
        "List all accounts by address or user name.",
        run="cli.users:list_users",
        example="slotlock users list --json",
        needs=("mongo_url",),
        columns=("login", "role", "name", "groups", "created at", "banned at"),
    ),
    "show": Command(
        "Show an account.",
        "`bookings` counts the slots that are not over.",
        run="cli.users:show_user",
        example="slotlock users show ada@school.example",
        needs=("mongo_url",),
        arguments=(LOGIN_NAME,),
        columns=(
            "id",
            "login",
            "role",
            "name",
            "groups",
            "created at",
            "has password",
            "signs in at provider",
            "verified",
            "self registered",
            "undeliverable since",
            "banned at",
            "ban reason",
            "bookings",
        ),
    ),
    "create": Command(
        "Create an account, and ask for its password twice.",
        run="cli.users:create_user",
        example="slotlock users create ada@school.example --role admin",
        needs=("mongo_url",),
        exit_codes={1: "The account exists, the password is too weak, or MongoDB is unavailable."},
        arguments=(
            LOGIN_NAME,
            argument(
                "--name", help="default: the user name, or the part of the address before the @"
            ),
            argument(
                "--role",
                type=Role,
                choices=list(Role),
                default=Role.MEMBER,
                help="default: member",
            ),
            PASSWORD_STDIN,
        ),
    ),
    "set-role": Command(
        "Change the role of an account, also in its open sessions.",
        run="cli.users:set_role",
        example="slotlock users set-role ada@school.example organizer",
        needs=("mongo_url",),
        arguments=(
            LOGIN_NAME,
            argument("role", type=Role, choices=list(Role), help="the new role"),
            argument(
                "--vouch", action="store_true", help="also of an account that somebody registered"
            ),
        ),
    ),
    "set-password": Command(
        "Set the password of an account, which it asks for twice, and end all sessions.",
        run="cli.users:set_password",
        example="slotlock users set-password ada@school.example",
        needs=("mongo_url",),
        arguments=(LOGIN_NAME, PASSWORD_STDIN),
    ),
    "reset-link": Command(
        "Print a link at which a user replaces the password.",
        "It works once, and for an hour. The old password works until then.",
        run="cli.users:create_reset",
        example="slotlock users reset-link ada@school.example",
        needs=("mongo_url",),
        uses=("public_url", "board"),
        arguments=(LOGIN_NAME, PAGE),
        columns=("link", "expires at"),
    ),
    "invite": Command(
        "Print links at which users set a first password, as CSV.",
        "Every user without a password who is not banned gets one, which works for 14 days. "
        "Earlier links end. The file is as secret as passwords.",
        run="cli.users:invite_users",
        example="slotlock users invite --group 5a > invitations.csv",
        needs=("mongo_url",),
        uses=("public_url", "board"),
        arguments=(
            argument("--group", help="only for users in this group"),
            PAGE,
            argument(
                "--separator",
                choices=list(CsvSeparator),
                type=CsvSeparator,
                default=CsvSeparator.COMMA,
                help="what separates the cells; default: comma",
            ),
        ),
    ),
    "import": Command(
        "Create and update users from a CSV file, completely or not at all.",
        "Without `--apply`, it only shows what would change.",
        run="cli.user_files:import_file",
        example="slotlock users import users.csv --apply",
        needs=("mongo_url",),
        uses=("providers",),
        exit_codes=FILE_EXIT_CODES,
        arguments=USER_FILE,
    ),
    "sync": Command(
        "Make the accounts those of a CSV file of all users, completely or not at all.",
        "Without `--apply`, it only shows what would change.",
        run="cli.user_files:sync_file",
        example="slotlock users sync all.csv --gone ban --apply",
        needs=("mongo_url",),
        uses=("providers",),
        exit_codes=FILE_EXIT_CODES,
        arguments=(
            *USER_FILE,
            argument(
                "--gone",
                choices=("keep", "ban"),
                default="keep",
                help="what happens to members whom an earlier file named and this one does not; "
                "default: keep",
            ),
            argument(
                "--gone-limit",
                type=number(0, 100),
                default=20,
                metavar="PERCENT",
                help="how many of the managed members may be banned at once; default: 20",
            ),
        ),
    ),
    "ban": Command(
        "Ban a user, and end the sessions.",
        "A running server removes the user from waiting lists. Bookings stay: organizers decide "
        "about them.",
        run="cli.users:ban_user",
        example='slotlock users ban ben@school.example --reason "left the school"',
        needs=("mongo_url",),
        arguments=(LOGIN_NAME, argument("--reason", help="what the user and organizers read")),
    ),
    "unban": Command(
        "Lift the ban of a user.",
        run="cli.users:unban_user",
        example="slotlock users unban ben@school.example",
        needs=("mongo_url",),
        arguments=(LOGIN_NAME,),
    ),
    "delete": Command(
        "Erase an account for good, after a confirmation.",
        "A running server cancels its future bookings within seconds.",
        run="cli.users:delete_user",
        example="slotlock users delete ben@school.example",
        needs=("mongo_url",),
        arguments=(LOGIN_NAME, YES),
    ),
}

DEAD_LETTER = "such as 0/1795313120145-0, from `slotlock queue list`"
QUEUE = {
    "show": Command(
        "Show how many requests wait in each partition of the admission queue.",
        run="cli.queue:show_queue",
        example="slotlock queue show",
        needs=("redis_url",),
        uses=("queue_partitions",),
        columns=("partition", "waiting", "dead letters"),
    ),
    "list": Command(
        "List the dead letters: requests that could not be processed.",
        run="cli.queue:list_dead_letters",
        example="slotlock queue list",
        needs=("redis_url",),
        uses=("queue_partitions",),
        columns=("entry", "requested at", "slot", "user", "reason"),
    ),
    "retry": Command(
        "Put dead letters back into the queue.",
        run="cli.queue:retry",
        example="slotlock queue retry",
        needs=("redis_url",),
        uses=("queue_partitions",),
        arguments=(argument("entry", nargs="?", help=f"{DEAD_LETTER}; default: all"),),
    ),
    "delete": Command(
        "Delete a dead letter for good, after a confirmation.",
        "Its ticket reports `LOST` then.",
        run="cli.queue:delete",
        example="slotlock queue delete 0/1795313120145-0",
        needs=("redis_url",),
        uses=("queue_partitions",),
        arguments=(argument("entry", help=DEAD_LETTER), YES),
    ),
}

OUTBOX_COLUMNS = ("at", "state", "attempts", "entry", "recipient", "note")
OUTBOX = {
    "list": Command(
        "List the mails and webhook calls that are to be sent or were sent, the newest first.",
        run="cli.outbox:list_entries",
        example="slotlock outbox list --state failed",
        needs=("mongo_url",),
        arguments=(
            argument(
                "--state",
                type=OutboxState,
                choices=list(OutboxState),
                help="only those in this state",
            ),
            argument(
                "--limit",
                type=number(1, MAX_ENTRIES),
                default=100,
                metavar="N",
                help="how many; default: 100",
            ),
        ),
        columns=OUTBOX_COLUMNS,
    ),
    "retry": Command(
        "Send again what failed, or had an undeliverable address.",
        "A worker sends it; the addresses count as deliverable again.",
        run="cli.outbox:retry",
        example="slotlock outbox retry --since 2026-09-01T08:00+02:00",
        needs=("mongo_url",),
        exit_codes={1: "There is no such entry, it cannot be sent, or MongoDB is unavailable."},
        arguments=(
            argument("entry", nargs="?", help="an id from `slotlock outbox list`; default: all"),
            argument(
                "--since",
                type=_time,
                metavar="TIME",
                help="only what happened since then, as 2026-09-01T08:00+02:00",
            ),
        ),
    ),
    "send-test": Command(
        "Send a mail, and show what the mail server responds.",
        "The running worker sends it, by its own `SLOTLOCK_SMTP_URL`: this tests the settings of "
        "the worker, not those of the command. It waits up to 30 s for the worker.",
        run="cli.outbox:send_test",
        example="slotlock outbox send-test you@school.example",
        needs=("mongo_url",),
        exit_codes={
            0: "The mail server has taken the mail.",
            1: "It has not, or no worker tried; stderr has the reason.",
        },
        arguments=(argument("address", help="the address that gets the mail"),),
        columns=OUTBOX_COLUMNS,
    ),
}

SLOTS = {
    "import": Command(
        "Create and change the courses of a campaign from a CSV file, completely or not at all.",
        "Without `--apply`, it only shows what would change.",
        run="cli.courses.slot_files:import_file",
        example="slotlock slots import courses.csv --campaign campaign_0123456789abcdef01234567 "
        "--by olga@school.example --apply",
        needs=("mongo_url", "redis_url"),
        exit_codes=FILE_EXIT_CODES,
        arguments=(
            argument("file", type=Path, help="CSV with columns such as number, title, places"),
            argument("--campaign", required=True, metavar="ID", help="the id of the campaign"),
            argument(
                "--by",
                required=True,
                metavar="EMAIL_OR_USERNAME",
                help="the organizer whom the audit log names",
            ),
            argument(
                "--time-zone",
                metavar="ZONE",
                help="the zone of new courses without one; default: that of the site",
            ),
            argument(
                "--create-resources",
                action="store_true",
                help="create resources with the names that are unknown",
            ),
            APPLY,
            JSON,
        ),
    ),
}

DRAW = {
    "verify": Command(
        "Recompute all that the public record of a draw claims, without a server.",
        run="cli.draws.verify:verify_record",
        example="slotlock draw verify record.json",
        exit_codes={0: "The record is right.", 1: "It is wrong, or cannot be read."},
        arguments=(argument("record", type=Path, help="the JSON file of the record"),),
    ),
}

COMMANDS = {
    "dev": Command(
        "Run everything on this machine, with embedded servers.",
        "It prints the address of the board and the sign-in of the admin. `make run` does the "
        "same in a clone.",
        run="devserver.run:run_dev",
        example="PORT=9000 slotlock dev",
        uses=("port", "data_dir", "mongod", "valkey"),
        uses_all_but=("queue_worker_metrics_port",),
    ),
    "serve": Command(
        "Run the app for production, until a signal.",
        run="cli.main:serve",
        example="slotlock serve --workers 2",
        needs=("mongo_url", "redis_url", "secret_key"),
        uses=("host", "port", "public_url", "admin_email", "admin_password"),
        uses_all_but=("queue_worker_metrics_port", "data_dir", "mongod", "valkey"),
        arguments=(
            argument(
                "--workers",
                type=number(1, 64),
                default=1,
                metavar="N",
                help="server processes, 1 to 64, which need Linux; default: 1",
            ),
        ),
    ),
    "worker": Command(
        "Serve the admission queue and send mail, until a signal.",
        run="cli.worker:run_worker",
        example="slotlock worker",
        needs=("mongo_url", "redis_url"),
        uses=(
            "host",
            "queue_worker_metrics_port",
            "secret_key",
            "public_url",
            "board",
            "site_name",
            "smtp_url",
            "mail_from",
            "mail_reply_to",
            "mail_rate",
            "mail_quiet_hours",
            "locale",
            "time_zone",
            "require_verified_email",
            "webhook_private_addresses",
            "queue_partitions",
            "queue_length",
            "redis_budget_ms",
            "max_clock_skew_s",
            "log_format",
            "log_level",
        ),
    ),
    "migrate": Command(
        "Build the indexes that the database lacks.",
        run="cli.migrate:migrate_database",
        example="slotlock migrate",
        needs=("mongo_url",),
        uses=("log_format", "log_level"),
        arguments=(
            argument(
                "--deadline",
                type=number(1, 100_000, "of minutes"),
                default=24 * 60,
                metavar="MINUTES",
                help="give up after this time; default: a day",
            ),
        ),
    ),
    "doctor": Command(
        "Check settings, MongoDB, Redis, clocks and limits.",
        "Each check is one line: ok, warning or FAIL, what was found, and what to do.",
        run="cli.doctor.command:run_doctor",
        example="slotlock doctor",
        uses=(
            "mongo_url",
            "redis_url",
            "secret_key",
            "admin_email",
            "admin_password",
            "public_url",
            "board",
            "smtp_url",
            "mail_from",
            "providers",
            "rate_limits",
            "max_requests",
            "max_sockets",
            "queue_partitions",
            "queue_length",
            "max_clock_skew_s",
            "data_dir",
        ),
        exit_codes={0: "No check failed; some may warn.", 1: "A check failed."},
        arguments=(JSON,),
    ),
    "backup": Command(
        "Write the whole database into a file, while bookings go on.",
        run="cli.backup:backup_database",
        example="slotlock backup /var/backups/slotlock-2026-11-23.backup",
        needs=("mongo_url",),
        arguments=(argument("file", type=Path, help="a new file"),),
    ),
    "restore": Command(
        "Restore the file of a backup, while no process of slotlock runs.",
        "Without `SLOTLOCK_MONGO_URL`, it starts the MongoDB of a stopped `slotlock dev`.",
        run="cli.backup:restore_database",
        example="slotlock restore slotlock-2026-11-23.backup --replace",
        uses=("mongo_url", "data_dir", "mongod", "valkey"),
        arguments=(
            argument("file", type=Path, help="the file of `slotlock backup`"),
            argument(
                "--replace", action="store_true", help="delete everything in the database first"
            ),
            argument("--yes", action="store_true", help="do not ask before --replace deletes"),
            argument(
                "--force",
                action="store_true",
                help="restore although processes are connected: what they write is mixed with the "
                "backup",
            ),
        ),
    ),
    "users": Command("Manage accounts.", "The app need not run.", actions=USERS),
    "slots": Command("Import courses.", "The app need not run.", actions=SLOTS),
    "queue": Command(
        "Manage the admission queue.", "It works on Redis; the app need not run.", actions=QUEUE
    ),
    "outbox": Command("Show, retry and test mails and webhook calls.", actions=OUTBOX),
    "draw": Command("Verify draws.", actions=DRAW),
    "simulate": Command(
        "Let simulated users rush at a running server, and check the results.",
        "It registers users and opens a campaign, which stay; `--campaign` rehearses yours with a "
        "copy, which is removed.",
        run="cli.simulate:simulate",
        define="simulation.command:define_simulate",
        example="slotlock simulate --users 400 --slots 10 --places 10",
        uses=("host", "port", "admin_email", "admin_password", "data_dir"),
        exit_codes={
            0: "Every promise holds.",
            1: "A promise is broken.",
            2: "The simulation could not be completed, or the arguments are wrong.",
        },
    ),
    "schema": Command(
        "Print the GraphQL schema.",
        run="cli.main:print_schema",
        example="slotlock schema > schema.graphql",
    ),
    "settings": Command(
        "Print the reference page of the settings.",
        run="cli.main:print_settings",
        example="slotlock settings",
    ),
    "commands": Command(
        "Print the reference page of the commands.",
        run="cli.main:print_commands",
        example="slotlock commands",
    ),
}
