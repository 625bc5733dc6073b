"""Introspection: its result is the same for every caller, so it is computed with the document."""

from graphql import (
    DocumentNode,
    ExecutionResult,
    GraphQLSchema,
    OperationDefinitionNode,
    execute_sync,
)

from slotlock.graphql.limits.operation_kinds import find_fragments, root_field_names
from slotlock.graphql.limits.result_size import ResultSizeLimitExecutor

# The schema may double: all that clients ask about it takes 30,079 values today. To compute as many
# as this takes 0.4 s, which count as the time of a new document.
MAX_INTROSPECTION_VALUES = 70_000
_INTROSPECTION = {"__schema", "__type"}


class _IntrospectionExecutor(ResultSizeLimitExecutor):
    max_values = MAX_INTROSPECTION_VALUES


def introspect(schema: GraphQLSchema, document: DocumentNode) -> ExecutionResult | None:
    """Return the result of a valid document that only asks about the schema; otherwise None.

    Its errors, if there are any, say that it has more than MAX_INTROSPECTION_VALUES. None for
    several operations, whose results would take several times as long, and for variables.
    """
    first, *others = (
        node for node in document.definitions if isinstance(node, OperationDefinitionNode)
    )
    if others or first.variable_definitions:
        return None
    names = set(root_field_names(first.selection_set, find_fragments(document)))
    if not names & _INTROSPECTION or names - _INTROSPECTION - {"__typename"}:
        return None
    return execute_sync(schema, document, executor_class=_IntrospectionExecutor)
