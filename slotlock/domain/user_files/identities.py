"""Plan which accounts get the identities at providers that a file of users names."""

from collections.abc import Mapping, Sequence

from slotlock.domain.shared.tables.file_problems import ProblemCollector
from slotlock.domain.shared.value_object import value_object
from slotlock.domain.user_files.choices import Choice, Choices
from slotlock.domain.user_files.columns import SUBJECT
from slotlock.domain.user_files.problems import ImportProblem
from slotlock.domain.user_files.user_file import UserRow
from slotlock.domain.users.account_admin_rules import (
    account_change_refusal,
    is_own_account,
    sign_in_change_refusal,
)
from slotlock.domain.users.identity import Identity, LinkedIdentity
from slotlock.domain.users.user import Caller, User, UserId

SUBJECT_TAKEN = "Another account has this subject."
SUBJECT_BY_ADMIN = (
    "The user of this account has signed in without this subject. Only an admin other than the "
    "user can add it."
)
OTHER_SUBJECT = "The user of this account has signed in with another subject of this provider."


@value_object
class IdentityChange:
    """The identity that an account gets, and those that it loses: unused ones, or by a claim."""

    added: Identity | None
    removed: tuple[Identity, ...] = ()


def plan_identities(
    rows: Sequence[UserRow],
    users: Mapping[str, User],
    linked: Mapping[UserId, Sequence[LinkedIdentity]],
    problems: ProblemCollector,
    choices: Choices,
    caller: Caller | None = None,
) -> dict[str, IdentityChange]:
    """Return the change of each account whose identities change, by login name.

    `linked` has the identities of these users, and of those who have what the rows name. An account
    may get what another one loses by the same file, so that a file can correct an earlier one.
    `caller` is None for the command line.
    """
    changes: dict[str, IdentityChange] = {}
    for row in rows:
        before = users.get(row.login_name)
        own = linked.get(before.id, ()) if before else ()
        choice = choices.of(row.line)
        if before is not None and before.self_registered and choice is not Choice.VOUCH:
            if choice is Choice.CLAIM and (own or row.identity):
                removed = tuple(each.identity for each in own)
                changes[row.login_name] = IdentityChange(row.identity, removed)
            continue
        if row.identity is None or any(each.identity == row.identity for each in own):
            continue
        replaced = [each for each in own if each.identity.issuer == row.identity.issuer]
        if any(each.linked_at for each in replaced):
            problems.add(row.line, SUBJECT, OTHER_SUBJECT, ImportProblem.OTHER_SUBJECT)
        elif (
            before is not None
            and account_change_refusal(caller, before) is None
            # An admin links a sign-in of their own: a stolen session must not name another one.
            and (sign_in_change_refusal(caller, before) or is_own_account(caller, before))
        ):
            problems.add(row.line, SUBJECT, SUBJECT_BY_ADMIN, ImportProblem.SUBJECT_BY_ADMIN)
        removed = tuple(each.identity for each in replaced)
        changes[row.login_name] = IdentityChange(row.identity, removed)
    left = {each.identity for own in linked.values() for each in own}
    left.difference_update(*(change.removed for change in changes.values()))
    for row in rows:
        change = changes.get(row.login_name)
        if change is not None and change.added in left:
            problems.add(row.line, SUBJECT, SUBJECT_TAKEN, ImportProblem.SUBJECT_TAKEN)
    return changes
