"""Limits on the size of a document, measured in one pass that visits each node once.

The cost of each fragment is measured once, so the time for nested fragments grows with the size of
the text and not with that of its expansion. The check runs before validation, whose cost is not
linear.
"""

from collections.abc import Iterator
from dataclasses import replace

from graphql import (
    DocumentNode,
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    GraphQLField,
    GraphQLNamedType,
    GraphQLSchema,
    InlineFragmentNode,
    IntValueNode,
    ListValueNode,
    OperationDefinitionNode,
    SelectionNode,
    SelectionSetNode,
    VariableDefinitionNode,
    get_named_type,
    get_nullable_type,
    is_composite_type,
    is_list_type,
)

from slotlock.domain.shared.value_object import value_object
from slotlock.graphql.core.connections import MAX_LIST_SIZE

# The estimated size of a list without pages, such as meetings, history or team members. Few have
# more items, and no client can make them longer.
DEFAULT_LIST_SIZE = 5
MAX_DOCUMENT_BYTES = 20_000
MAX_TOKENS = 1_000
# Above every limit. Sums stop here, so that nested fragments produce no huge numbers.
COUNT_CEILING = 1_000_000
# Twice what the largest request needs: a campaign of ten sets of 200 groups, with its limits.
MAX_VARIABLE_VALUES = 5_000


@value_object
class DocumentCost:
    """The size of a selection with all fragments expanded.

    `values` estimates its result: each field counts once for every item of the lists around it.
    """

    depth: int = 0
    fields: int = 0
    aliases: int = 0
    directives: int = 0
    roots: int = 0
    values: int = 0

    def plus(self, other: "DocumentCost") -> "DocumentCost":
        """Return the size of both selections together."""
        return DocumentCost(
            max(self.depth, other.depth),
            _capped_sum(self.fields, other.fields),
            _capped_sum(self.aliases, other.aliases),
            _capped_sum(self.directives, other.directives),
            _capped_sum(self.roots, other.roots),
            _capped_sum(self.values, other.values),
        )


def _capped_sum(one: int, other: int) -> int:
    return min(one + other, COUNT_CEILING)


_LIMIT_DESCRIPTIONS = {
    "depth": "levels",
    "fields": "fields, with fragments expanded",
    "aliases": "aliases",
    "directives": "directives",
    "roots": "root fields",
    "values": "values in its result, with lists at their longest",
}
DOCUMENT_LIMITS = DocumentCost(
    depth=10, fields=400, aliases=15, directives=20, roots=15, values=20_000
)


_NodeWithDirectives = (
    SelectionNode | OperationDefinitionNode | FragmentDefinitionNode | VariableDefinitionNode
)


def exceeded_limit(schema: GraphQLSchema, document: DocumentNode) -> str | None:
    """Describe the first limit that a document exceeds, or return None."""
    visitor = _CostVisitor(schema, document)
    for cost in visitor.all_costs():
        for name, description in _LIMIT_DESCRIPTIONS.items():
            limit = getattr(DOCUMENT_LIMITS, name)
            if getattr(cost, name) > limit:
                return f"A document may have at most {limit} {description}."
    return None


class _CostVisitor:
    def __init__(self, schema: GraphQLSchema, document: DocumentNode) -> None:
        self._schema = schema
        self._definitions = document.definitions
        self._fragments = {
            node.name.value: node
            for node in document.definitions
            if isinstance(node, FragmentDefinitionNode)
        }
        self._fragment_costs: dict[str, DocumentCost] = {}

    def all_costs(self) -> Iterator[DocumentCost]:
        for node in self._definitions:
            if isinstance(node, OperationDefinitionNode):
                yield self._operation_cost(node)
        # Validation would reject unused fragments, but at a high cost.
        for name in self._fragments.keys() - self._fragment_costs.keys():
            yield replace(self._fragment_cost(name), roots=0)

    def _operation_cost(self, node: OperationDefinitionNode) -> DocumentCost:
        cost = _directive_cost(node, *(node.variable_definitions or ()))
        root = self._schema.get_root_type(node.operation)
        return cost.plus(self._selection_cost(node.selection_set, root))

    def _selection_cost(
        self, selection_set: SelectionSetNode | None, parent: GraphQLNamedType | None
    ) -> DocumentCost:
        cost = DocumentCost()
        for node in selection_set.selections if selection_set else ():
            cost = cost.plus(_directive_cost(node))
            match node:
                case FieldNode():
                    cost = cost.plus(self._field_cost(node, parent))
                case InlineFragmentNode(type_condition=condition):
                    inner = self._schema.get_type(condition.name.value) if condition else parent
                    cost = cost.plus(self._selection_cost(node.selection_set, inner))
                case FragmentSpreadNode():
                    cost = cost.plus(self._fragment_cost(node.name.value))
        return cost

    def _field_cost(self, node: FieldNode, parent: GraphQLNamedType | None) -> DocumentCost:
        name = node.name.value
        # Validation rejects unknown fields later; here they count as fields without lists.
        field = self._schema.get_field(parent, name) if is_composite_type(parent) else None
        inner = self._selection_cost(
            node.selection_set, get_named_type(field.type) if field else None
        )
        # Introspection nests deeply by nature, and its result is the same for every client.
        depth = 0 if name.startswith("__") else inner.depth + 1
        aliases = _capped_sum(inner.aliases, 1 if node.alias else 0)
        items = estimated_list_size(field, node, parent) if field and parent else 1
        values = min(items * _capped_sum(inner.values, 1), COUNT_CEILING)
        return DocumentCost(
            depth, _capped_sum(inner.fields, 1), aliases, inner.directives, 1, values
        )

    def _fragment_cost(self, name: str) -> DocumentCost:
        if name not in self._fragment_costs:
            # A fragment inside itself costs nothing here: validation rejects it later.
            self._fragment_costs[name] = DocumentCost()
            if (fragment := self._fragments.get(name)) is not None:
                parent = self._schema.get_type(fragment.type_condition.name.value)
                cost = self._selection_cost(fragment.selection_set, parent)
                self._fragment_costs[name] = cost.plus(_directive_cost(fragment))
        return self._fragment_costs[name]


def _directive_cost(*nodes: _NodeWithDirectives) -> DocumentCost:
    return DocumentCost(directives=sum(len(node.directives or ()) for node in nodes))


def estimated_list_size(field: GraphQLField, node: FieldNode, parent: GraphQLNamedType) -> int:
    """Estimate how many items a field returns; 1 if it is not a list."""
    is_list = is_list_type(get_nullable_type(field.type))
    # Without `first`, a list that is not a connection has all its items, which are mostly few.
    if "first" in field.args and (not is_list or _has_argument(node, "first")):
        return _requested_page_size(field, node)
    # The field that returns a connection has counted the page (Relay specification).
    if not is_list or parent.name.endswith("Connection"):
        return 1
    return _requested_id_count(node) if "ids" in field.args else DEFAULT_LIST_SIZE


def _has_argument(node: FieldNode, name: str) -> bool:
    return any(argument.name.value == name for argument in node.arguments or ())


def _requested_page_size(field: GraphQLField, node: FieldNode) -> int:
    for argument in node.arguments or ():
        if argument.name.value == "first":
            # The value of a variable is unknown here, and its default is no upper bound.
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


_CONTAINERS = frozenset({dict, list})


def has_too_many_values(variables: object) -> bool:
    """Return whether variables hold more than MAX_VARIABLE_VALUES, including nested values."""
    if not variables:
        return False
    if isinstance(variables, dict) and _CONTAINERS.isdisjoint(map(type, variables.values())):
        return len(variables) > MAX_VARIABLE_VALUES  # of most requests, none is nested
    count, pending = 0, [variables]
    while pending:
        container = pending.pop()
        if isinstance(container, dict | list):
            count += len(container)
            if count > MAX_VARIABLE_VALUES:
                return True
            values = container.values() if isinstance(container, dict) else container
            pending += [value for value in values if isinstance(value, dict | list)]
    return False
