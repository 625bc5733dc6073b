"""Messages speak to the user, name no field of the API, and follow from a declaration."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from slotlock.domain.shared.declare import declarations, refusal
from slotlock.domain.teams import team_outcomes
from slotlock.domain.teams.team_outcomes import TeamBusy
from slotlock.domain.users import account_admin_rules
from slotlock.domain.users.user import Caller, Role
from slotlock.graphql.core.outcomes import ResultView, present, register_type
from tests.support.domain.builders import build_caller
from tools import explain

PACKAGE = Path(__file__).parents[3] / "slotlock"
# The layers whose texts are problems of fields and refusals, besides docstrings.
LAYERS = ("domain", "services", "auth")
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
ADA = build_caller("ada")
ADMIN = build_caller("admin", Role.ADMIN)


def texts_below(node: ast.AST) -> Iterator[str]:
    """Yield the string constants below a node without docstrings and descriptions for the API."""
    if isinstance(node, ast.Call) and ast.unparse(node.func).startswith("shown"):
        return
    if isinstance(node, ast.keyword) and node.arg == "shown":
        return
    if isinstance(node, ast.ClassDef) and "DescribedEnum" in map(ast.unparse, node.bases):
        return
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
    assert [text for text in texts if re.search("`.+`", text)] == []


@pytest.mark.parametrize(
    ("viewer", "expected"),
    [
        (ADA, "You are already a member of this team."),
        (ADMIN, "This user is already a member of the team."),
    ],
)
def test_an_invitation_of_a_member_speaks_to_the_member(viewer: Caller, expected: str) -> None:
    outcome = team_outcomes.AlreadyMember(ADA.user_id)
    assert present(outcome, ResultView(viewer)).message == expected


@pytest.mark.parametrize(
    ("viewer", "expected"), [(ADA, "This is the last admin."), (ADMIN, "You are the last admin.")]
)
def test_the_last_admin_is_spoken_to(viewer: Caller, expected: str) -> None:
    outcome = account_admin_rules.LastAdmin(ADMIN.user_id)
    refusal = present(outcome, ResultView(viewer))
    assert refusal.message == f"{expected} Please make another user an admin first."


def test_each_declaration_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    for declared, declaration in declarations.items():
        assert explain.main([declared.__name__]) == 0
        printed = capsys.readouterr().out
        assert declared.__name__ in printed
        assert f"type {declaration.name}" in printed
        assert "unions    none" not in printed or declaration.name == "FieldProblem"
    assert explain.main(["Unknown"]) == 1


def test_a_message_contains_only_values_of_its_refusal() -> None:
    with pytest.raises(TypeError, match="SlotPaused has no until"):

        @refusal(message="Please come back at {until}.")
        class SlotPaused:
            """The slot is paused."""


def test_a_type_cannot_be_written_by_hand_after_it_was_derived() -> None:
    with pytest.raises(TypeError, match="TeamBusy is used before its type is registered"):
        register_type(TeamBusy, object, present)
