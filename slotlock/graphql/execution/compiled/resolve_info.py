"""The `info` argument of resolvers and type predicates, built when one of them needs it."""

from graphql import (
    FieldNode,
    GraphQLField,
    GraphQLObjectType,
    GraphQLResolveInfo,
    pyutils,
)

from slotlock.graphql.execution.compiled.errors import ValuePath, to_path
from slotlock.graphql.execution.compiled.execution import Execution


class FieldInfo:
    """The part of `info` that is the same for every execution of a field in a document."""

    __slots__ = ("coordinate", "definition", "field_name", "nodes", "parent_type")

    def __init__(
        self, parent_type: GraphQLObjectType, definition: GraphQLField, nodes: list[FieldNode]
    ) -> None:
        self.parent_type = parent_type
        self.definition = definition
        self.nodes = nodes
        self.field_name = nodes[0].name.value
        self.coordinate = f"{parent_type}.{self.field_name}"

    def build(self, execution: Execution, path: ValuePath) -> GraphQLResolveInfo[object]:
        """Build the info for the field that a path leads to, or for an item of its lists."""
        while path[0] is not None and isinstance(path[1], int):
            path = path[0]
        return GraphQLResolveInfo(
            self.field_name,
            self.nodes,
            self.definition.type,
            self.parent_type,
            to_path(path),
            execution.schema,
            execution.fragments,
            execution.root_value,
            execution.operation,
            execution.variables,
            execution.context,
            pyutils.is_awaitable,
            None,
            execution.helpers,
        )
