"""Plan which accounts of a file of users have which guardians, and find the children it means."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

from slotlock.domain.shared.folding import fold
from slotlock.domain.shared.tables.file_problems import ProblemCollector
from slotlock.domain.shared.value_object import value_object
from slotlock.domain.user_files.choices import Choices
from slotlock.domain.user_files.columns import GUARDIAN, NAME
from slotlock.domain.user_files.problems import ImportProblem
from slotlock.domain.user_files.user_file import NamedGuardian, UserRow
from slotlock.domain.users.dependents import MAX_DEPENDENTS
from slotlock.domain.users.user import Role, User, UserId

CHILD_WITHOUT_LOGIN_NAME = (
    "These guardians have a child of this name without a login name. Please give the login name to "
    "that account first."
)
SEVERAL_CHILDREN = (
    "These guardians have several children of this name. Please give the login name of the right "
    "one, or erase the accounts that are too many."
)
# By code; `guardian` is the login name in the cell.
_TEXTS = {
    ImportProblem.UNKNOWN_GUARDIAN: "{guardian} is neither an email address nor a known user name.",
    ImportProblem.ERASED: "The user of {guardian} was erased.",
    ImportProblem.SELF_REGISTERED_GUARDIAN: (
        "Somebody registered {guardian}, and nobody has checked that it belongs to its user. "
        "Please vouch for the user or claim the account first."
    ),
    ImportProblem.BANNED_GUARDIAN: "{guardian} is banned. Please lift the ban first.",
    ImportProblem.GUARDIAN_IS_DEPENDENT: "{guardian} has guardians and cannot be one.",
    ImportProblem.TOO_MANY_DEPENDENTS: (
        "{guardian} is the guardian of more than {maximum} users with this file."
    ),
    ImportProblem.HAS_DEPENDENTS: "This user is a guardian and cannot have one.",
    ImportProblem.DEPENDENT_NOT_MEMBER: "Only a member can have guardians.",
}


@value_object
class FamilyPlan:
    """The guardians of the lines whose guardians change, by line.

    `new_guardians` have no account yet; the file gives them a name, which may be empty. `names` are
    the login names of all guardians in the file. `added` and `removed` count pairs of a child and a
    guardian.
    """

    guardians: Mapping[int, tuple[str, ...]]
    new_guardians: Mapping[str, str]
    names: frozenset[str]
    added: int
    removed: int


def find_children(
    rows: Sequence[UserRow], users: Mapping[str, User], problems: ProblemCollector
) -> list[UserRow]:
    """Return the rows, those of known children without a login name with that of the account.

    A child is known if one of the guardians is the same, and the name but for capitals and accents.
    """
    children = defaultdict[tuple[UserId, str], set[str]](set)
    for user in users.values():
        for guardian in () if user.erased else user.guardians:
            children[guardian, fold(user.name)].add(user.login_name)
    found, first_lines = [], dict[str, int]()
    for row in rows:
        parents = (users.get(each.login_name) for each in row.guardians or ())
        keys = [(each.id, fold(row.name or "")) for each in parents if each is not None]
        known = set[str]().union(*(children[key] for key in keys))
        if len(known) > 1 and not row.has_login_name:
            # It would get what is about another child, and may have a second place then.
            problems.add(row.line, NAME, SEVERAL_CHILDREN, ImportProblem.SEVERAL_CHILDREN)
        elif known and not row.has_login_name:
            row = replace(row, login_name=min(known))  # noqa: PLW2901
        elif any(users[each].has_made_login_name for each in known):
            code = ImportProblem.CHILD_WITHOUT_LOGIN_NAME
            problems.add(row.line, NAME, CHILD_WITHOUT_LOGIN_NAME, code)
        first_line = first_lines.setdefault(row.login_name, row.line)
        if first_line != row.line:
            message = f"Line {first_line} has the same user."
            problems.add(row.line, NAME, message, ImportProblem.SAME_USER, line=first_line)
        found.append(row)
    return found


def plan_families(
    rows: Sequence[UserRow],
    users: Mapping[str, User],
    problems: ProblemCollector,
    choices: Choices,
) -> FamilyPlan:
    """Plan the guardians of these rows, which change an account that somebody registered by choice.

    `users` has the accounts of the rows, their guardians, and the dependents of all of these.
    """
    login_names = {user.id: user.login_name for user in users.values()}
    chosen = [row for row in rows if is_changed(row, users.get(row.login_name), choices)]
    before = {
        login_name: tuple(login_names.get(each, f"id {each}") for each in user.guardians)
        for login_name, user in users.items()
        if not user.erased
    }
    named = {row.login_name: row.guardians for row in chosen if row.guardians is not None}
    after = dict(before)
    after |= {name: tuple(each.login_name for each in cell) for name, cell in named.items()}
    checker = _Checker(users, problems, frozenset(row.login_name for row in chosen), after)
    changed, new, added, removed = dict[int, tuple[str, ...]](), dict[str, str](), 0, 0
    for row in chosen:
        if row.guardians is None:
            continue
        old, now = set(before.get(row.login_name, ())), set(after[row.login_name])
        checker.check(row, row.guardians, now - old)
        if old != now:
            changed[row.line] = after[row.login_name]
            added, removed = added + len(now - old), removed + len(old - now)
    for each in (guardian for cell in named.values() for guardian in cell):
        if checker.is_new(each.login_name):
            new[each.login_name] = new.get(each.login_name) or each.name or ""
    names = frozenset(each.login_name for row in rows for each in row.guardians or ())
    return FamilyPlan(changed, new, names, added, removed)


def is_changed(row: UserRow, user: User | None, choices: Choices) -> bool:
    """Return whether the import does what a line says, and not only by a choice that is missing."""
    return user is None or not user.self_registered or choices.of(row.line) is not None


class _Checker:
    """Reports why an account cannot have the guardians of a line.

    `after` has the guardians that each account will have, and `own_lines` are the accounts that
    lines of the file create or change.
    """

    def __init__(
        self,
        users: Mapping[str, User],
        problems: ProblemCollector,
        own_lines: frozenset[str],
        after: Mapping[str, Sequence[str]],
    ) -> None:
        self._users = users
        self._problems = problems
        self._own_lines = own_lines
        self._after = after
        self._counts = Counter(name for names in after.values() for name in names)

    def is_new(self, guardian: str) -> bool:
        """Return whether neither a line nor an account is that of a guardian."""
        return guardian not in self._users and guardian not in self._own_lines

    def check(self, row: UserRow, guardians: Sequence[NamedGuardian], added: set[str]) -> None:
        """Report the problems of the guardians in a line, of which some are added."""
        user = self._users.get(row.login_name)
        for each in guardians:
            if code := self._problem_of(each.login_name, each.login_name in added):
                self._add(row.line, code, guardian=each.login_name)
        if guardians and user and user.role is not Role.MEMBER:
            self._add(row.line, ImportProblem.DEPENDENT_NOT_MEMBER)
        if guardians and self._counts[row.login_name]:
            self._add(row.line, ImportProblem.HAS_DEPENDENTS)

    def _problem_of(self, guardian: str, is_added: bool) -> ImportProblem | None:
        user = self._users.get(guardian)
        if self.is_new(guardian) and "@" not in guardian:
            return ImportProblem.UNKNOWN_GUARDIAN
        if user and user.erased:
            return ImportProblem.ERASED
        if user and user.self_registered and guardian not in self._own_lines:
            return ImportProblem.SELF_REGISTERED_GUARDIAN
        if is_added and user and user.banned:
            return ImportProblem.BANNED_GUARDIAN
        if self._after.get(guardian):
            return ImportProblem.GUARDIAN_IS_DEPENDENT
        if is_added and self._counts[guardian] > MAX_DEPENDENTS:
            return ImportProblem.TOO_MANY_DEPENDENTS
        return None

    def _add(self, line: int, code: ImportProblem, **values: str) -> None:
        all_values: dict[str, int | str] = dict(values)
        if code is ImportProblem.TOO_MANY_DEPENDENTS:
            all_values["maximum"] = MAX_DEPENDENTS
        self._problems.add(line, GUARDIAN, _TEXTS[code].format_map(all_values), code, **all_values)
