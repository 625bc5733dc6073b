"""Plan an import of users: which accounts are created, updated or unchanged."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from enum import StrEnum

from slotlock.domain.resources.resource import Resource
from slotlock.domain.shared.folding import search_words
from slotlock.domain.shared.tables.file_problems import InvalidFile, ProblemCollector
from slotlock.domain.shared.value_object import value_object
from slotlock.domain.user_files.choices import Choice, Choices
from slotlock.domain.user_files.columns import EMAIL, USERNAME
from slotlock.domain.user_files.families import find_children, plan_families
from slotlock.domain.user_files.identities import IdentityChange, plan_identities
from slotlock.domain.user_files.leaders import LeaderChange, plan_leaders
from slotlock.domain.user_files.problems import ImportProblem
from slotlock.domain.user_files.user_file import UserRow
from slotlock.domain.users.account_admin_rules import (
    SelfRegistered,
    account_change_refusal,
    grant_refusal,
    may_change_sign_ins,
)
from slotlock.domain.users.groups import in_natural_order
from slotlock.domain.users.identity import Identity, LinkedIdentity
from slotlock.domain.users.user import MAX_USER_NAME_LENGTH, Caller, User, UserId

# MongoDB updates an index for each group and each search word that an import adds or removes.
# One transaction has room for this many updates (ADR 0018).
MAX_INDEX_CHANGES = 100_000
TOO_MANY_INDEX_CHANGES = (
    f"The file changes more than {MAX_INDEX_CHANGES} groups and words of names and addresses. "
    "Please split it before this line."
)

# A claim also ends the sessions, calendar feed and team memberships of an account.
CLAIM_INDEX_CHANGES = 9
NO_CHOICES = Choices()
# In a preview.
SHOWN_ROWS = 5
ADMIN_REQUIRED = "This account belongs to an organizer or an admin, whom only an admin can change."
CLAIM_BY_ADMIN = "Only an admin can claim the account of this line."
ERASED = "The user of this account was erased."


@value_object
class NewUser:
    """An account to create; the user has no password yet."""

    login_name: str
    name: str
    groups: tuple[str, ...]
    identity: Identity | None = None
    family_name: str | None = None
    phone: str | None = None
    guardians: tuple[str, ...] = ()


@value_object
class UserUpdate:
    """An account to change: the user as loaded, and their new name, groups and telephone.

    `choice` is what ends the mark of an account that somebody registered, if it has one. The
    `guardians` are login names; None if they do not change.
    """

    before: User
    name: str
    groups: tuple[str, ...]
    choice: Choice | None = None
    identities: IdentityChange | None = None
    family_name: str | None = None
    phone: str | None = None
    guardians: tuple[str, ...] | None = None

    @property
    def is_claim(self) -> bool:
        """Return whether the user who registered the account is locked out."""
        return self.choice is Choice.CLAIM

    @property
    def after(self) -> User:
        """Return the user after the import."""
        after = replace(self.before, name=self.name, groups=self.groups, self_registered=False)
        after = replace(after, phone=self.phone)
        return replace(after, has_password=False) if self.is_claim else after


@value_object
class SelfRegisteredAccount:
    """A line with the address of an account that somebody registered; it does not change."""

    line: int
    user: User


@value_object
class Membership:
    """What a file of all users changes besides: which accounts it manages, and their bans.

    `named` are accounts that such a file names for the first time, and `returned` those that a sync
    banned and that the file names again. `gone` are the managed members, of `managed_count`, whom
    the file no longer names, by login name; they are banned with `bans_gone`.
    """

    named: tuple[User, ...]
    returned: tuple[User, ...]
    gone: tuple[User, ...]
    managed_count: int
    bans_gone: bool

    @property
    def is_empty(self) -> bool:
        """Return whether there is nothing to write."""
        return not (self.named or self.returned or (self.gone and self.bans_gone))

    def exceeds(self, limit_percent: int) -> bool:
        """Return whether more than this share of the managed members would be banned."""
        return self.bans_gone and len(self.gone) * 100 > limit_percent * self.managed_count


@value_object
class ImportPlan:
    """The accounts that an import creates and updates, and those that it does not change.

    Guardians are created before the users who have them. `login_names` are those of the lines, and
    `guardian_names` those of the guardians in them. `membership` is None unless the file has all
    users.
    """

    created: tuple[NewUser, ...]
    updated: tuple[UserUpdate, ...]
    unchanged: int
    self_registered: tuple[SelfRegisteredAccount, ...] = ()
    membership: Membership | None = None
    login_names: tuple[str, ...] = ()
    guardian_names: frozenset[str] = frozenset()
    leaders: tuple[LeaderChange, ...] = ()
    links_added: int = 0
    links_removed: int = 0

    @property
    def without_leader(self) -> tuple[str, ...]:
        """The names of the resources that nobody leads any more."""
        return tuple(each.resource.name for each in self.leaders if each.login_name is None)

    @property
    def names_identities(self) -> bool:
        """Return whether accounts get identities, of which each belongs to one account."""
        changes = (update.identities for update in self.updated)
        return any(new.identity for new in self.created) or any(each for each in changes)

    @property
    def is_empty(self) -> bool:
        """Return whether the import has nothing to write."""
        is_same_membership = self.membership is None or self.membership.is_empty
        return is_same_membership and not (self.created or self.updated or self.leaders)


class OddLine(StrEnum):
    """Why lines may not be what their author meant. They are imported as they are."""

    NO_GROUP = "NO_GROUP"
    SHORT_NAME = "SHORT_NAME"
    ODD_ADDRESS = "ODD_ADDRESS"


@value_object
class ImportPreview:
    """The first rows of a file, the groups with their numbers of users, and the odd lines."""

    first: tuple[UserRow, ...] = ()
    groups: tuple[tuple[str, int], ...] = ()
    odd_lines: tuple[tuple[OddLine, tuple[int, ...]], ...] = ()


def preview_rows(rows: Sequence[UserRow]) -> ImportPreview:
    """Return what an organizer looks at before the import."""
    groups = Counter(group for row in rows for group in row.groups or ())
    with_blank = [row for row in rows if " " in (row.name or "")]
    # Where most have a first and a last name, one word is only one of them.
    is_short = {row.line for row in rows if row.name} - {row.line for row in with_blank}
    is_odd = {
        OddLine.NO_GROUP: [row.line for row in rows if row.groups == ()],
        OddLine.SHORT_NAME: sorted(is_short) if 2 * len(with_blank) > len(rows) else [],
        OddLine.ODD_ADDRESS: [row.line for row in rows if any(map(_is_odd, _addresses_of(row)))],
    }
    return ImportPreview(
        tuple(rows[:SHOWN_ROWS]),
        tuple(sorted(groups.items(), key=lambda each: in_natural_order(each[0]))),
        tuple((warning, tuple(lines)) for warning, lines in is_odd.items() if lines),
    )


def _addresses_of(row: UserRow) -> list[str]:
    names = [row.login_name, *(each.login_name for each in row.guardians or ())]
    return [each for each in names if "@" in each]


def _is_odd(address: str) -> bool:
    return "." not in address.partition("@")[2]


@value_object
class ImportResult:
    """The number of accounts that an import wrote, or would write in a dry run.

    Nothing was written for the `self_registered` ones. `leavers` are members of the groups of the
    file whom it does not name, and `similar_groups` groups that could be one; both depend on other
    imports, so that they are not compared. The `preview` is of the file alone. A link is a pair of
    a user and a guardian. Nobody leads the resources `without_leader` any more.
    """

    created: int
    updated: int
    unchanged: int
    dry_run: bool
    claimed: int = 0
    self_registered: tuple[SelfRegisteredAccount, ...] = ()
    ignored_columns: tuple[str, ...] = ()
    vouched_for: int = 0
    links_added: int = 0
    links_removed: int = 0
    leaders_changed: int = 0
    without_leader: tuple[str, ...] = ()
    leavers: tuple[User, ...] = field(default=(), compare=False)
    similar_groups: tuple[tuple[str, ...], ...] = field(default=(), compare=False)
    preview: ImportPreview = field(default=ImportPreview(), compare=False)


@value_object
class ImportBusy:
    """Time ran out, or others changed the same users; nothing was imported, retry later."""

    retry_after_ms: int


@value_object
class ImportTooLarge:
    """The import does not fit into one transaction; nothing was imported, split the file."""


def to_result(
    plan: ImportPlan,
    ignored_columns: tuple[str, ...],
    leavers: Sequence[User],
    similar: tuple[tuple[str, ...], ...],
    preview: ImportPreview,
    *,
    dry_run: bool,
) -> ImportResult:
    """Return what a plan changes, whom its file does not name, and which groups may be one."""
    choices = [update.choice for update in plan.updated]
    return ImportResult(
        created=len(plan.created),
        updated=choices.count(None),
        unchanged=plan.unchanged,
        dry_run=dry_run,
        claimed=choices.count(Choice.CLAIM),
        self_registered=plan.self_registered,
        ignored_columns=ignored_columns,
        vouched_for=choices.count(Choice.VOUCH),
        links_added=plan.links_added,
        links_removed=plan.links_removed,
        leaders_changed=len(plan.leaders),
        without_leader=plan.without_leader,
        leavers=tuple(leavers),
        similar_groups=similar,
        preview=preview,
    )


ImportOutcome = ImportResult | ImportBusy | ImportTooLarge


def plan_import(
    rows: Sequence[UserRow],
    existing_users: Mapping[str, User],
    caller: Caller | None = None,
    *,
    choices: Choices = NO_CHOICES,
    linked: Mapping[UserId, Sequence[LinkedIdentity]] | None = None,
    resources: Sequence[Resource] = (),
) -> ImportPlan | InvalidFile:
    """Plan the import of these rows by a caller, who is None for the command line.

    `existing_users` holds the accounts of the rows by login name, those of their guardians, and the
    dependents of all of these. Accounts that somebody registered change only by choice. `linked`
    are the identities of these accounts, and the owners of those that the rows name. `resources`
    are all, if rows name some.
    """
    updated, registered = [], []
    problems = ProblemCollector()
    rows = find_children(rows, existing_users, problems)
    families = plan_families(rows, existing_users, problems, choices)
    leaders = plan_leaders(rows, existing_users, resources, choices, problems)
    identities = plan_identities(rows, existing_users, linked or {}, problems, choices, caller)
    created = [_to_new_user(name, of_file) for name, of_file in families.new_guardians.items()]
    index_changes = sum(map(_count_new_entries, created))
    for row in rows:
        before = existing_users.get(row.login_name)
        guardians = families.guardians.get(row.line)
        if before is None:
            new = _to_new_user(row.login_name, row.name, row, guardians or ())
            created.append(new)
            index_changes += _count_new_entries(new)
        elif isinstance(grant_refusal(caller, before), SelfRegistered) and not choices.of(row.line):
            registered.append(SelfRegisteredAccount(row.line, before))
        elif update := _to_update(before, row, choices, identities.get(row.login_name), guardians):
            column = EMAIL if before.email else USERNAME
            if before.erased:
                problems.add(row.line, column, ERASED, ImportProblem.ERASED)
            elif account_change_refusal(caller, before):
                problems.add(row.line, column, ADMIN_REQUIRED, ImportProblem.ADMIN_REQUIRED)
            elif update.is_claim and not may_change_sign_ins(caller):
                problems.add(row.line, column, CLAIM_BY_ADMIN, ImportProblem.CLAIM_BY_ADMIN)
            updated.append(update)
            index_changes += _count_index_changes(update)
        if index_changes > MAX_INDEX_CHANGES:
            too_many, code = ProblemCollector(), ImportProblem.TOO_MANY_CHANGES
            message = TOO_MANY_INDEX_CHANGES
            too_many.add(row.line, None, message, code, maximum=MAX_INDEX_CHANGES)
            return too_many.to_invalid_file()
    if problems.count:
        return problems.to_invalid_file()
    new_rows = len(created) - len(families.new_guardians)
    return ImportPlan(
        # A guardian has none, and has an id before the children do.
        tuple(sorted(created, key=lambda new: bool(new.guardians))),
        tuple(updated),
        len(rows) - new_rows - len(updated) - len(registered),
        tuple(registered),
        login_names=tuple(row.login_name for row in rows),
        guardian_names=families.names,
        leaders=leaders,
        links_added=families.added,
        links_removed=families.removed,
    )


def _to_new_user(
    login_name: str,
    name: str | None,
    row: UserRow | None = None,
    guardians: tuple[str, ...] = (),
) -> NewUser:
    name = name or login_name.partition("@")[0][:MAX_USER_NAME_LENGTH]
    if row is None:
        return NewUser(login_name, name, ())
    groups = row.groups or ()
    return NewUser(login_name, name, groups, row.identity, row.family_name, row.phone, guardians)


def _count_new_entries(new: NewUser) -> int:
    words = _search_words_of(new.name, new.login_name)
    return len(words) + len(new.groups) + len(new.guardians) + (new.identity is not None)


def _to_update(
    before: User,
    row: UserRow,
    choices: Choices,
    identities: IdentityChange | None,
    guardians: tuple[str, ...] | None,
) -> UserUpdate | None:
    choice = choices.of(row.line) if before.self_registered else None
    name = before.name if row.name is None else row.name
    groups = before.groups if row.groups is None else row.groups
    family_name = before.family_name if row.family_name is None else row.family_name
    # A stranger may have entered the number of an account that is claimed.
    phone = row.phone or (None if choice is Choice.CLAIM else before.phone)
    is_same = (name, groups, identities, phone) == (before.name, before.groups, None, before.phone)
    is_same = is_same and family_name == before.family_name
    if is_same and choice is None and guardians is None:
        return None
    return UserUpdate(before, name, groups, choice, identities, family_name, phone, guardians)


def _count_index_changes(update: UserUpdate) -> int:
    before = update.before
    count = len(set(before.groups) ^ set(update.groups))
    count += 0 if update.guardians is None else len(before.guardians) + len(update.guardians)
    if update.name != before.name:
        old_words = set(_search_words_of(before.name, before.login_name))
        count += len(old_words ^ set(_search_words_of(update.name, before.login_name)))
    if update.identities:
        count += len(update.identities.removed) + (update.identities.added is not None)
    return count + (CLAIM_INDEX_CHANGES if update.is_claim else update.choice is not None)


def _search_words_of(name: str, login_name: str) -> list[str]:
    return search_words(f"{name} {login_name}")
