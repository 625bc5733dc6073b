"""Messages that apps show speak to the user, and name no field of the API."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from slotlock.domain.teams import outcomes
from slotlock.domain.users import administration
from slotlock.domain.users.user import Caller, Role
from slotlock.graphql.core.result_view import ResultView
from slotlock.graphql.teams.refusals import AlreadyMember
from slotlock.graphql.users.refusals import LastAdmin
from tests.support.domain.builders import build_caller

PACKAGE = Path(__file__).parents[3] / "slotlock"
# The layers whose texts are problems of fields and refusals, besides docstrings.
LAYERS = ("domain", "services", "auth")
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
ADA = build_caller("ada")
ADMIN = build_caller("admin", Role.ADMIN)


def texts_below(node: ast.AST) -> Iterator[str]:
    """Yield the string constants below a node without docstrings."""
    children = list(ast.iter_child_nodes(node))
    if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
        children.remove(node.body[0])
    for child in children:
        if isinstance(child, ast.Constant) and isinstance(child.value, str):
            yield child.value
        yield from texts_below(child)


def refusal_messages(tree: ast.AST) -> Iterator[str]:
    """Yield the texts of `message=...` and of `MESSAGE = ...`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg == "message":
            yield from texts_below(node)
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "MESSAGE":
            yield from texts_below(node)


def test_no_problem_of_a_field_and_no_refusal_names_a_field_of_the_api() -> None:
    texts = [
        text
        for layer in LAYERS
        for path in (PACKAGE / layer).rglob("*.py")
        for text in texts_below(ast.parse(path.read_text()))
    ]
    texts += [
        text
        for path in (PACKAGE / "graphql").rglob("*.py")
        for text in refusal_messages(ast.parse(path.read_text()))
    ]
    assert "Every place in this slot is taken." in texts
    assert [text for text in texts if "`" in text] == []


@pytest.mark.parametrize(
    ("viewer", "expected"),
    [
        (ADA, "You are already a member of this team."),
        (ADMIN, "This user is already a member of the team."),
    ],
)
def test_an_invitation_of_a_member_speaks_to_the_member(viewer: Caller, expected: str) -> None:
    outcome = outcomes.AlreadyMember(ADA.user_id)
    assert AlreadyMember.from_domain(outcome, ResultView(viewer)).message == expected


@pytest.mark.parametrize(
    ("viewer", "expected"), [(ADA, "This is the last admin."), (ADMIN, "You are the last admin.")]
)
def test_the_last_admin_is_spoken_to(viewer: Caller, expected: str) -> None:
    outcome = administration.LastAdmin(ADMIN.user_id)
    refusal = LastAdmin.from_domain(outcome, ResultView(viewer))
    assert refusal.message == f"{expected} Please make another user an admin first."
