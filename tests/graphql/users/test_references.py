"""A reference to a user is shown without reading the user if only the id is selected."""

from types import SimpleNamespace
from typing import cast

import pytest
from graphql import FieldNode, FragmentDefinitionNode, OperationDefinitionNode, parse

from slotlock.domain.users.user import UserId
from slotlock.graphql.context import Info
from slotlock.graphql.users.types import load_referenced_user

USER_ID = UserId("0" * 23 + "7")


class UserReadError(Exception):
    """The user was read."""


class Context:
    """A context that cannot read users."""

    @property
    def loaders(self) -> None:
        """Fail."""
        raise UserReadError


def info_of(text: str) -> Info:
    """Return the info for the first field of an operation."""
    document = parse(text)
    operation = document.definitions[0]
    assert isinstance(operation, OperationDefinitionNode)
    fragments = {
        node.name.value: node
        for node in document.definitions
        if isinstance(node, FragmentDefinitionNode)
    }
    nodes = [node for node in operation.selection_set.selections if isinstance(node, FieldNode)]
    raw_info = SimpleNamespace(field_nodes=nodes, fragments=fragments)
    return cast("Info", SimpleNamespace(_raw_info=raw_info, context=Context()))


@pytest.mark.parametrize(
    "text",
    [
        "{ user { id } }",
        "{ user { __typename } }",
        "{ user { key: id } user { __typename } }",
        "{ user { ... on Node { id } ...F } } fragment F on User { id }",
    ],
)
async def test_a_reference_with_only_the_id_is_not_read(text: str) -> None:
    info = info_of(text)
    for _ in range(2):  # the names that are selected are remembered
        user = await load_referenced_user(info, USER_ID)
        assert user is not None
        assert user.id == f"user_{USER_ID}"


@pytest.mark.parametrize(
    "text",
    [
        "{ user { id name } }",
        "{ user { id } user { email } }",
        "{ user { id ...F } } fragment F on User { ... on User { role } }",
        "query($no: Boolean!) { user { id name @include(if: $no) } }",
    ],
)
async def test_control_any_other_field_is_read(text: str) -> None:
    with pytest.raises(UserReadError):
        await load_referenced_user(info_of(text), USER_ID)
