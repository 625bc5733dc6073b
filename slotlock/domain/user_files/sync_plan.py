"""Plan a sync: make the accounts those of a file of all users, and find who is gone.

An account is managed from the first sync whose file names it. Only a managed member can be gone.
The guardians in a file are named by it, too.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from slotlock.domain.resources.resource import Resource
from slotlock.domain.shared.tables.file_problems import InvalidFile
from slotlock.domain.user_files.choices import Choices
from slotlock.domain.user_files.plan import ImportPlan, Membership, plan_import
from slotlock.domain.user_files.user_file import UserRow
from slotlock.domain.users.identity import LinkedIdentity
from slotlock.domain.users.user import Role, User, UserId

# What organizers see of the ban.
GONE_REASON = "Not in the file of all users any more"


def plan_sync(
    rows: Sequence[UserRow],
    users: Mapping[str, User],
    managed: frozenset[UserId],
    banned_by_sync: frozenset[UserId],
    *,
    choices: Choices,
    bans_gone: bool,
    linked: Mapping[UserId, Sequence[LinkedIdentity]] | None = None,
    resources: Sequence[Resource] = (),
) -> ImportPlan | InvalidFile:
    """Plan the sync of all rows of a file, by the rules of an import from the command line.

    `users` holds the accounts of the rows and all managed ones, by login name, and `linked` the
    identities as in `plan_import`. Whom the file names again, a sync has not banned any more.
    """
    unbanned = {
        name: replace(user, banned_at=None) if user.id in banned_by_sync else user
        for name, user in users.items()
    }
    plan = plan_import(rows, unbanned, choices=choices, linked=linked, resources=resources)
    if isinstance(plan, InvalidFile):
        return plan
    file_names = {*plan.login_names, *plan.guardian_names}
    registered = {account.user.id for account in plan.self_registered}
    known = [user for name in plan.login_names if (user := users.get(name))]
    # A sync manages only those guardians whom it created.
    guardians = map(users.get, sorted(plan.guardian_names - {*plan.login_names}))
    known += [user for user in guardians if user and user.id in banned_by_sync]
    named = [user for user in known if not user.erased and user.id not in registered]
    members = [u for u in users.values() if u.id in managed and u.role is Role.MEMBER]
    gone = tuple(
        sorted(
            (user for user in members if user.login_name not in file_names),
            key=lambda user: user.login_name,
        )
    )
    membership = Membership(
        tuple(user for user in named if user.id not in managed),
        tuple(user for user in named if user.id in banned_by_sync),
        gone,
        len(members),
        bans_gone,
    )
    return replace(plan, membership=membership)
