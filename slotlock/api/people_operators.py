"""What operators do with many people at once: import a file, print invitations."""

from pathlib import Path

from slotlock.api.operators import OperatorError, open_accounts
from slotlock.api.people import invitation_lines
from slotlock.api.settings import Settings
from slotlock.auth.importing import import_people
from slotlock.auth.inviting import invite
from slotlock.domain.groups import group_problem, normalised
from slotlock.domain.people import Role
from slotlock.domain.people_import import MAX_BYTES, BadFile, LineProblem
from slotlock.domain.people_plan import ImportBusy, TooMuchAtOnce


async def import_file(settings: Settings, file: Path, *, dry_run: bool) -> str:
    """Make people as a file says, or only tell what that would do. Errors: OperatorError."""
    try:
        with file.open("rb") as opened:
            body = opened.read(MAX_BYTES + 1)
    except OSError as error:
        raise OperatorError(f"{file} cannot be read ({error.strerror})") from None
    if len(body) > MAX_BYTES:
        raise OperatorError(f"{file} has more than {MAX_BYTES} bytes; split it")
    async with open_accounts(settings) as auth:
        outcome = await import_people(auth, body, dry_run=dry_run)
    if isinstance(outcome, BadFile):
        raise OperatorError("\n".join(map(_in_words, outcome.problems)) + _more(outcome))
    if isinstance(outcome, ImportBusy):
        raise OperatorError("others are changing these people; nothing was imported, try again")
    if isinstance(outcome, TooMuchAtOnce):
        raise OperatorError("too much for one import; nothing was imported, split the file")
    counts = f"{outcome.created} created, {outcome.updated} updated, {outcome.unchanged} unchanged"
    return f"would be: {counts}" if dry_run else counts


async def print_invitations(settings: Settings, group: str | None) -> None:
    """Print new invitations for all who never set a password, as CSV. Errors: OperatorError."""
    if group is not None:
        if problem := group_problem(group):
            raise OperatorError(f"--group: {problem}")
        (group,) = normalised([group])
    async with open_accounts(settings) as auth:
        async for line in invitation_lines(invite(auth, group, tuple(Role))):
            print(line.rstrip("\r\n"))


def _in_words(problem: LineProblem) -> str:
    where = f"line {problem.line}" + (f", {problem.column}" if problem.column else "")
    return f"{where}: {problem.message}"


def _more(file: BadFile) -> str:
    left = file.count - len(file.problems)
    return f"\nand {left} more" if left else ""
