"""How long a list in an answer can be, as far as its document tells.

The model is GitHub's node limit: pages multiply with the pages inside them.
"""

from graphql import (
    FieldNode,
    GraphQLField,
    GraphQLNamedType,
    IntValueNode,
    ListValueNode,
    get_nullable_type,
    is_list_type,
)

# The longest page of a list, and as many ids at once.
MAX_LIST_SIZE = 100
# A list that is no page: meetings of a course, changes of a booking, members of a team. Few have
# more items, and none can be asked for longer than it is.
DEFAULT_LIST_SIZE = 5


def estimated_list_size(field: GraphQLField, node: FieldNode, parent: GraphQLNamedType) -> int:
    """At most so many items are answered by a field; 1 for one that is no list."""
    if "first" in field.args:
        return _requested_page_size(field, node)
    # Of a connection (a type so named, by the Relay specification) the page has been counted.
    if not is_list_type(get_nullable_type(field.type)) or parent.name.endswith("Connection"):
        return 1
    return _requested_id_count(node) if "ids" in field.args else DEFAULT_LIST_SIZE


def _requested_page_size(field: GraphQLField, node: FieldNode) -> int:
    for argument in node.arguments or ():
        if argument.name.value == "first":
            # What a variable will be is not known here, and its default is no bound.
            literal = argument.value
            if isinstance(literal, IntValueNode) and len(literal.value) <= len(str(MAX_LIST_SIZE)):
                return min(max(int(literal.value), 1), MAX_LIST_SIZE)
            return MAX_LIST_SIZE
    default = field.args["first"].default_value
    return default if isinstance(default, int) else MAX_LIST_SIZE


def _requested_id_count(node: FieldNode) -> int:
    for argument in node.arguments or ():
        if isinstance(argument.value, ListValueNode):
            return min(len(argument.value.values), MAX_LIST_SIZE)
    return MAX_LIST_SIZE
