"""The schema grows: each limit that it can reach leaves room for twice of what it needs today."""

from collections.abc import Iterator

import orjson
from graphql import (
    GraphQLList,
    GraphQLObjectType,
    GraphQLUnionType,
    Lexer,
    Source,
    TokenKind,
    execute_sync,
    get_named_type,
    get_nullable_type,
    is_leaf_type,
    parse,
)

from slotlock.graphql.core.connections import MAX_LIST_SIZE
from slotlock.graphql.execution.introspection import MAX_INTROSPECTION_VALUES
from slotlock.graphql.limits import complexity
from slotlock.graphql.limits.complexity import (
    DEFAULT_LIST_SIZE,
    DOCUMENT_LIMITS,
    MAX_DOCUMENT_BYTES,
    MAX_TOKENS,
)
from slotlock.graphql.limits.field_merging import MAX_FIELD_PAIRS
from slotlock.graphql.limits.result_size import MAX_RESULT_BYTES
from slotlock.graphql.schema.schema import executable_schema
from tests.graphql.execution.test_introspection import EVERYTHING


def count_values(value: object) -> int:
    """Count the fields and list items of a result."""
    if isinstance(value, dict):
        return len(value) + sum(map(count_values, value.values()))
    if isinstance(value, list):
        return len(value) + sum(map(count_values, value))
    return 0


def count_tokens(text: str) -> int:
    """Count the tokens of a document."""
    lexer, count = Lexer(Source(text)), 0
    while lexer.advance().kind is not TokenKind.EOF:
        count += 1
    return count


def values_on_a_page(node_type: GraphQLObjectType) -> int:
    """Count the values of the largest page, with all fields of its nodes that are no objects."""
    items = [
        DEFAULT_LIST_SIZE if isinstance(get_nullable_type(field.type), GraphQLList) else 1
        for field in node_type.fields.values()
        if is_leaf_type(get_named_type(field.type))
    ]
    return MAX_LIST_SIZE * (1 + sum(items))


def types_of_nodes() -> Iterator[GraphQLObjectType]:
    """Yield the types that connections list."""
    for name, found in executable_schema.type_map.items():
        if name.endswith("Connection") and isinstance(found, GraphQLObjectType):
            node = get_named_type(found.fields["nodes"].type)
            if isinstance(node, GraphQLObjectType):
                yield node


def every_outcome() -> str:
    """Build a document with the code and the message of each type of the largest union."""
    unions = [t for t in executable_schema.type_map.values() if isinstance(t, GraphQLUnionType)]
    largest = max(unions, key=lambda union: len(union.types))
    members = " ".join(f"... on {each.name} {{ code message }}" for each in largest.types)
    return "mutation { anything { __typename " + members + " } }"


def test_the_schema_may_double_within_each_limit_that_it_can_reach() -> None:
    outcomes = every_outcome()
    introspected = execute_sync(executable_schema, parse(EVERYTHING)).data
    # What the schema needs, and the limit on it.
    needs = {
        "values of introspection": (count_values(introspected), MAX_INTROSPECTION_VALUES),
        "bytes of introspection": (len(orjson.dumps(introspected)), MAX_RESULT_BYTES),
        "values on a page": (max(map(values_on_a_page, types_of_nodes())), DOCUMENT_LIMITS.values),
        "fields of a node": (max(len(t.fields) for t in types_of_nodes()), DOCUMENT_LIMITS.fields),
        "tokens of all outcomes": (count_tokens(outcomes), MAX_TOKENS),
        "bytes of all outcomes": (len(outcomes), MAX_DOCUMENT_BYTES),
        "pairs in all outcomes": (2 * outcomes.count("code") ** 2 // 2, MAX_FIELD_PAIRS),
    }
    assert [name for name, (needed, limit) in needs.items() if not 0 < 2 * needed <= limit] == []


def test_introspection_with_all_options_is_within_every_limit_of_documents() -> None:
    assert complexity.exceeded_limit(executable_schema, parse(EVERYTHING)) is None
    assert count_tokens(EVERYTHING) <= MAX_TOKENS
    assert len(EVERYTHING) <= MAX_DOCUMENT_BYTES
