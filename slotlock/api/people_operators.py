"""What operators do with many people at once: import a file, print invitations."""

from pathlib import Path

from slotlock.api.operators import CommandError, open_auth
from slotlock.api.people import invitation_csv_lines
from slotlock.api.settings import Settings
from slotlock.auth.importing import import_users
from slotlock.auth.inviting import invite
from slotlock.domain.groups import clean_groups, validate_group
from slotlock.domain.people import Role
from slotlock.domain.people_import import MAX_FILE_BYTES, InvalidUserFile, LineProblem
from slotlock.domain.people_plan import ImportBusy, ImportTooLarge


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
