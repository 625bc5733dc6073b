"""Dependents: users, such as children, for whom one or two guardians act."""

from collections.abc import Collection, Iterable, Sequence

from slotlock.domain.shared.folding import fold
from slotlock.domain.shared.problems import Problem, ProblemCode
from slotlock.domain.shared.validation import FieldProblem, InvalidInput
from slotlock.domain.users.account_admin_rules import SelfRegistered
from slotlock.domain.users.user import Role, User, UserId

MAX_GUARDIANS = 2
MAX_DEPENDENTS = 20

GuardianRefusal = SelfRegistered | InvalidInput


def validate_guardians(role: Role, guardian_ids: Sequence[UserId]) -> Problem | None:
    """Return the problem with the guardians of a user of this role, or None."""
    if guardian_ids and role is not Role.MEMBER:
        return ProblemCode.DEPENDENT_NOT_MEMBER.problem()
    if len(guardian_ids) > MAX_GUARDIANS:
        return ProblemCode.TOO_MANY_GUARDIANS.problem(maximum=MAX_GUARDIANS)
    return None


def namesake_refusal(user: User, users: Iterable[User]) -> InvalidInput | None:
    """Return why a user with guardians may be one of these users; None if it is another.

    As in a file of users, the name is not enough if both have a login name.
    """
    for each in users:
        is_sibling = each.id != user.id and not {*each.guardians}.isdisjoint(user.guardians)
        is_unsure = user.has_made_login_name or each.has_made_login_name
        if is_sibling and is_unsure and fold(each.name) == fold(user.name):
            problem = ProblemCode.DEPENDENT_EXISTS.problem(name=each.name)
            return InvalidInput((FieldProblem("name", problem),))
    return None


def guardian_refusal(
    user_id: UserId, guardian: User, dependents: Collection[User]
) -> GuardianRefusal | None:
    """Return why somebody cannot become the guardian of a user; None if they can.

    `dependents` are those of both. A stranger who registered the address of a parent would get the
    child, so somebody has to vouch for them first.
    """
    if guardian.self_registered:
        return SelfRegistered()
    problem: Problem | None = None
    others = {each.id for each in dependents if guardian.id in each.guardians}
    if any(user_id in each.guardians for each in dependents):
        problem = ProblemCode.HAS_DEPENDENTS.problem()
    elif guardian.guardians or guardian.id == user_id:
        problem = ProblemCode.GUARDIAN_IS_DEPENDENT.problem(name=guardian.name)
    elif guardian.banned:
        problem = ProblemCode.USER_IS_BANNED.problem()
    elif len(others) >= MAX_DEPENDENTS:
        problem = ProblemCode.TOO_MANY_DEPENDENTS.problem(
            name=guardian.name, maximum=MAX_DEPENDENTS
        )
    return InvalidInput((FieldProblem("guardianIds", problem),)) if problem else None
