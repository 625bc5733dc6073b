"""Commands for files of users: import some of them, or sync the accounts with a file of all."""

import json
from argparse import Namespace
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path

from slotlock.api.endpoints.user_file_endpoints import import_report, registered_report
from slotlock.auth.admin.user_import import TooManyGone, import_users, sync_users
from slotlock.auth.container import Auth
from slotlock.cli.deployment import CommandError
from slotlock.cli.users import with_auth
from slotlock.domain.shared.tables.file_problems import InvalidFile, LineProblem
from slotlock.domain.shared.tables.table import MAX_FILE_BYTES
from slotlock.domain.user_files.choices import INVALID_CHOICES, Choice, Choices, parse_choices
from slotlock.domain.user_files.columns import EMAIL, GUARDIANS
from slotlock.domain.user_files.plan import (
    ImportBusy,
    ImportPlan,
    ImportResult,
    ImportTooLarge,
    SelfRegisteredAccount,
    UserUpdate,
)
from slotlock.domain.user_files.problems import ImportProblem
from slotlock.domain.user_files.user_file import UserFile, parse_user_file
from slotlock.domain.users.user import User, UserId
from slotlock.graphql.times import format_time

SHOWN_LINES = 10
Bookings = dict[UserId, list[tuple[datetime, str]]]
KINDS = {"claimed": Choice.CLAIM, "vouched for": Choice.VOUCH, "changed": None}
DRY_RUN = "this was a dry run; --apply makes these changes"
LEAVERS = (
    "these members are in groups of the file; if they have left, `slotlock users sync` with a file "
    "of all users bans them"
)
DO_NOT_SPLIT = (
    "A sync needs all users in one file, so do not split this one: `slotlock users import` takes "
    "it in parts, and a sync of all of it has less to change afterwards."
)


OF_PARENTS = "If these are addresses of parents: --addresses-of guardians"


def import_file(args: Namespace) -> str:
    """Create and update users from a file, or only return what would change."""
    return with_auth(lambda auth: _import_users(auth, args))


def sync_file(args: Namespace) -> str:
    """Make the accounts those of a file of all users, or only return what would change."""
    return with_auth(lambda auth: _sync_users(auth, args))


def _choices(args: Namespace) -> Choices:
    choices = parse_choices(args.claim, args.vouch)
    if choices is None:
        raise CommandError(INVALID_CHOICES)
    return choices


async def _import_users(auth: Auth, args: Namespace) -> str:
    """Create and update users from a CSV file, or only count the changes."""
    outcome = await import_users(
        auth,
        read_file(args.file),
        dry_run=not args.apply,
        choices=_choices(args),
        addresses_of_guardians=args.addresses_of == GUARDIANS,
    )
    if isinstance(outcome, InvalidFile | ImportBusy | ImportTooLarge):
        raise CommandError(_refusal_text(outcome))
    if args.json:
        return json.dumps(import_report(outcome), indent=2)
    counts = f"{outcome.created} created, {outcome.updated} updated, {outcome.unchanged} unchanged"
    if outcome.claimed:
        counts += f", {outcome.claimed} claimed"
    if outcome.vouched_for:
        counts += f", {outcome.vouched_for} vouched for"
    lines = [counts, *_links(outcome, outcome.leaders_changed)]
    lines += _warnings(outcome.self_registered, outcome.ignored_columns)
    lines += [f"perhaps one group: {', '.join(each)}" for each in outcome.similar_groups]
    if outcome.leavers:
        lines += _shown("not in the file", [_user_cells(each) for each in outcome.leavers])
        lines.append(LEAVERS)
    return "\n".join(lines if args.apply else [*lines, DRY_RUN])


async def _sync_users(auth: Auth, args: Namespace) -> str:
    """Make the accounts those of a CSV file of all users, or only report what that would change."""
    of_guardians = args.addresses_of == GUARDIANS
    file = parse_user_file(read_file(args.file), addresses_of_guardians=of_guardians)
    if isinstance(file, InvalidFile):
        raise CommandError(_refusal_text(file, of_sync=True))
    bans_gone, limit = args.gone == "ban", args.gone_limit
    outcome = await sync_users(
        auth,
        file,
        dry_run=not args.apply,
        choices=_choices(args),
        bans_gone=bans_gone,
        gone_limit=limit,
    )
    if isinstance(outcome, TooManyGone):
        raise CommandError(f"nothing was changed: {_too_many_gone(outcome.plan, limit)}")
    if not isinstance(outcome, ImportPlan):
        raise CommandError(_refusal_text(outcome, of_sync=True))
    membership = outcome.membership
    gone = membership.gone if membership else ()
    bookings = await auth.repositories.user_imports.find_future_bookings(gone, auth.now())
    if args.json:
        return json.dumps(_sync_report(outcome, file, bookings, args), indent=2)
    lines = [*_plan_lines(outcome, bookings), _summary(outcome)]
    lines += _links(outcome, len(outcome.leaders))
    lines += _warnings(outcome.self_registered, file.ignored_columns)
    if not args.apply:
        if membership and membership.exceeds(limit):
            lines.append(f"--apply would change nothing: {_too_many_gone(outcome, limit)}")
        else:
            lines.append(DRY_RUN)
    return "\n".join(lines)


def _sync_report(
    plan: ImportPlan, file: UserFile, bookings: Bookings, args: Namespace
) -> dict[str, object]:
    """Return the JSON of a sync, with all accounts by their login names."""
    membership, updates = plan.membership, plan.updated
    gone = membership.gone if membership else ()
    return {
        "dryRun": not args.apply,
        "created": [_shown_login(each.login_name) or each.name for each in plan.created],
        "updated": [_login_of(each.before) for each in updates if each.choice is None],
        "unchanged": plan.unchanged,
        "claimed": [each.before.login_name for each in updates if each.is_claim],
        "vouchedFor": [each.before.login_name for each in updates if each.choice is Choice.VOUCH],
        "linksAdded": plan.links_added,
        "linksRemoved": plan.links_removed,
        "leadersChanged": len(plan.leaders),
        "withoutLeader": list(plan.without_leader),
        "returned": [_login_of(each) for each in membership.returned] if membership else [],
        "gone": [
            {
                "login": _login_of(user),
                "bookings": [
                    {"startTime": format_time(start), "title": title}
                    for start, title in bookings.get(user.id, [])
                ],
            }
            for user in gone
        ],
        "bansGone": args.gone == "ban",
        "exceedsGoneLimit": bool(membership and membership.exceeds(args.gone_limit)),
        "selfRegistered": registered_report(plan.self_registered),
        "ignoredColumns": list(file.ignored_columns),
    }


def _plan_lines(plan: ImportPlan, bookings: Bookings) -> Iterator[str]:
    """Yield the first accounts of each kind, and all that are gone and have bookings."""
    yield from _shown(
        "new", [_cells(each.login_name, each.name, each.groups) for each in plan.created]
    )
    for kind, choice in KINDS.items():
        of_kind = [each for each in plan.updated if each.choice is choice]
        yield from _shown(kind, [_change_cells(each) for each in of_kind])
    if plan.membership is None:
        return
    yield from _shown("back", [_user_cells(each) for each in plan.membership.returned])
    gone = sorted(plan.membership.gone, key=lambda user: user.id not in bookings)
    lines = [f"{_user_cells(each)}\t{_booking_text(bookings.get(each.id, []))}" for each in gone]
    yield from _shown("gone", lines, max(SHOWN_LINES, len(bookings)))


def _shown(kind: str, lines: Sequence[str], count: int = SHOWN_LINES) -> Iterator[str]:
    for line in lines[:count]:
        yield f"{kind}\t{line}"
    if len(lines) > count:
        yield f"{kind}\t... and {len(lines) - count} more"


def _cells(login_name: str, name: str, groups: Sequence[str]) -> str:
    return f"{_shown_login(login_name)}\t{name}\t{', '.join(groups)}"


def _shown_login(login_name: str) -> str:
    """Return a login name; an empty one for a made one, which has a blank and is not shown."""
    return "" if " " in login_name else login_name


def _login_of(user: User) -> str:
    """Return what names an account: the login name, or the name of a child without one."""
    return user.name if user.has_made_login_name else user.login_name


def _links(outcome: ImportResult | ImportPlan, leaders: int) -> Iterator[str]:
    """Yield how many links between users and guardians, or users and resources, change."""
    if outcome.links_added or outcome.links_removed:
        yield f"links to guardians: {outcome.links_added} new, {outcome.links_removed} removed"
    if leaders:
        yield f"resources with another leader: {leaders}"
    if outcome.without_leader:
        yield f"nobody leads any more: {', '.join(outcome.without_leader)}"


def _user_cells(user: User) -> str:
    return _cells(user.login_name, user.name, user.groups)


def _change_cells(update: UserUpdate) -> str:
    before, after = update.before, update.after
    changes = [f"{before.name} -> {after.name}"] if before.name != after.name else [after.name]
    old_groups, new_groups = ", ".join(before.groups), ", ".join(after.groups)
    changes.append(f"{old_groups} -> {new_groups}" if old_groups != new_groups else new_groups)
    if update.identities and update.identities.added:
        changes.append(f"subject {update.identities.added.subject}")
    return "\t".join((_shown_login(before.login_name), *changes))


def _booking_text(bookings: Sequence[tuple[datetime, str]]) -> str:
    shown = ", ".join(f"{start:%Y-%m-%d} {title}" for start, title in bookings[:SHOWN_LINES])
    more = f", and {len(bookings) - SHOWN_LINES} more" if len(bookings) > SHOWN_LINES else ""
    return f"still booked: {shown}{more}" if bookings else "no bookings"


def _summary(plan: ImportPlan) -> str:
    choices = [each.choice for each in plan.updated]
    text = f"{len(plan.created)} new, {choices.count(None)} changed"
    for kind, choice in KINDS.items():
        if choice and choice in choices:
            text += f", {choices.count(choice)} {kind}"
    text += f", {plan.unchanged} unchanged"
    if membership := plan.membership:
        text += f", {len(membership.returned)} back, {len(membership.gone)} gone"
        if membership.gone:
            text += " and banned" if membership.bans_gone else " and not changed (see --gone)"
    return text


def _too_many_gone(plan: ImportPlan, limit: int) -> str:
    membership = plan.membership
    gone, managed = (len(membership.gone), membership.managed_count) if membership else (0, 0)
    return (
        f"{gone} of {managed} managed members are gone, more than {limit} %; "
        "is the file complete? --gone-limit allows more"
    )


def _warnings(
    registered: Sequence[SelfRegisteredAccount], ignored_columns: Sequence[str]
) -> Iterator[str]:
    for account in registered:
        user = account.user
        yield (
            f"line {account.line}: {user.login_name} registered as {user.name} on "
            f"{user.created_at:%Y-%m-%d} and did not change; see --vouch and --claim"
        )
    if ignored_columns:
        yield f"columns that were ignored: {', '.join(ignored_columns)}"


def read_file(path: Path) -> bytes:
    """Return the content of a file of a school."""
    try:
        with path.open("rb") as opened:
            body = opened.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise CommandError(f"{path} cannot be read ({error.strerror})") from None
    if len(body) > MAX_FILE_BYTES:
        raise CommandError(f"{path} has more than {MAX_FILE_BYTES} bytes")
    return body


def _refusal_text(
    refusal: InvalidFile | ImportBusy | ImportTooLarge, *, of_sync: bool = False
) -> str:
    too_large = {ImportProblem.TOO_MANY_USERS, ImportProblem.TOO_MANY_CHANGES}
    match refusal:
        case InvalidFile():
            text = invalid_file_text(refusal)
            codes = {each.code for each in refusal.problems if each.column in (None, EMAIL)}
            if ImportProblem.SAME_USER in codes:
                return f"{text}\n{OF_PARENTS}"
            return f"{text}\n{DO_NOT_SPLIT}" if of_sync and codes & too_large else text
        case ImportBusy():
            return "time ran out, or others change these users; nothing was imported, try again"
        case ImportTooLarge():
            text = "too much for one import; nothing was imported"
            return f"{text}. {DO_NOT_SPLIT}" if of_sync else f"{text}, split the file"


def invalid_file_text(invalid: InvalidFile) -> str:
    """Return a line for each problem of a file."""
    return "\n".join(map(_format_problem, invalid.problems)) + _unlisted_problems(invalid)


def _format_problem(problem: LineProblem) -> str:
    """Return `line 3, email: ...`, or `lines 3, 4, 7, ... (250 in total), email: ...`."""
    lines = ", ".join(map(str, problem.lines))
    if problem.count > len(problem.lines):
        lines += f", ... ({problem.count} in total)"
    location = f"line{'s' if problem.count > 1 else ''} {lines}"
    column = problem.header or problem.column
    return f"{location}{f', {column}' if column else ''}: {problem.message}"


def _unlisted_problems(invalid_file: InvalidFile) -> str:
    unlisted = invalid_file.count - sum(problem.count for problem in invalid_file.problems)
    return f"\nand {unlisted} more" if unlisted else ""
