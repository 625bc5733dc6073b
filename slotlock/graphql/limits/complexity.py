"""How large a document may be, measured in one pass that visits each node once.

Fragments are measured once and remembered, so a bomb of nested fragments costs what it weighs on
the wire, not what it expands to. This runs before validation, whose cost is not linear.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

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

from slotlock.graphql.core.connections import MAX_LIST_SIZE

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


MAX_DOCUMENT_BYTES = 20_000
MAX_TOKENS = 1_000
# More than any limit; sums stop here, so that no bomb makes numbers of many digits.
COUNT_CEILING = 1_000_000


@dataclass(frozen=True, slots=True)
class DocumentCost:
    """What a selection comes to when every fragment in it is written out.

    `values` is what its answer can hold: every field, as often as the lists around it have items.
    """

    depth: int = 0
    fields: int = 0
    aliases: int = 0
    directives: int = 0
    roots: int = 0
    values: int = 0

    def plus(self, other: "DocumentCost") -> "DocumentCost":
        """Both selections together."""
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
    "fields": "fields, with its fragments written out",
    "aliases": "aliases",
    "directives": "directives",
    "roots": "root fields",
    "values": "values to answer, lists at their longest",
}
DOCUMENT_LIMITS = DocumentCost(
    depth=10, fields=400, aliases=15, directives=20, roots=15, values=20_000
)


_NodeWithDirectives = (
    SelectionNode | OperationDefinitionNode | FragmentDefinitionNode | VariableDefinitionNode
)


def exceeded_limit(schema: GraphQLSchema, document: DocumentNode) -> str | None:
    """The first limit that a part of the document exceeds, in words; None if none is."""
    measure = _CostVisitor(schema, document)
    for size in measure.all_costs():
        for name in DocumentCost.__slots__:
            if getattr(size, name) > getattr(DOCUMENT_LIMITS, name):
                limit = getattr(DOCUMENT_LIMITS, name)
                return f"A document has at most {limit} {_LIMIT_DESCRIPTIONS[name]}."
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
        # What no operation uses is refused by validation, at a price.
        for name in self._fragments.keys() - self._fragment_costs.keys():
            yield replace(self._fragment_cost(name), roots=0)

    def _operation_cost(self, node: OperationDefinitionNode) -> DocumentCost:
        size = _directive_cost(node, *(node.variable_definitions or ()))
        root = self._schema.get_root_type(node.operation)
        return size.plus(self._selection_cost(node.selection_set, root))

    def _selection_cost(
        self, selection_set: SelectionSetNode | None, parent: GraphQLNamedType | None
    ) -> DocumentCost:
        size = DocumentCost()
        for node in selection_set.selections if selection_set else ():
            size = size.plus(_directive_cost(node))
            match node:
                case FieldNode():
                    size = size.plus(self._field_cost(node, parent))
                case InlineFragmentNode(type_condition=condition):
                    inner = self._schema.get_type(condition.name.value) if condition else parent
                    size = size.plus(self._selection_cost(node.selection_set, inner))
                case FragmentSpreadNode():
                    size = size.plus(self._fragment_cost(node.name.value))
        return size

    def _field_cost(self, node: FieldNode, parent: GraphQLNamedType | None) -> DocumentCost:
        name = node.name.value
        # Validation refuses what is no field; until then it is one without lists.
        field = self._schema.get_field(parent, name) if is_composite_type(parent) else None
        inner = self._selection_cost(
            node.selection_set, get_named_type(field.type) if field else None
        )
        # Introspection nests deeply by nature, and its answer is the same for everyone.
        depth = 0 if name.startswith("__") else inner.depth + 1
        aliases = _capped_sum(inner.aliases, 1 if node.alias else 0)
        times = estimated_list_size(field, node, parent) if field and parent else 1
        values = min(times * _capped_sum(inner.values, 1), COUNT_CEILING)
        return DocumentCost(
            depth, _capped_sum(inner.fields, 1), aliases, inner.directives, 1, values
        )

    def _fragment_cost(self, name: str) -> DocumentCost:
        if name not in self._fragment_costs:
            # A fragment inside itself counts as nothing here: validation refuses it afterwards.
            self._fragment_costs[name] = DocumentCost()
            if (fragment := self._fragments.get(name)) is not None:
                parent = self._schema.get_type(fragment.type_condition.name.value)
                size = self._selection_cost(fragment.selection_set, parent)
                self._fragment_costs[name] = size.plus(_directive_cost(fragment))
        return self._fragment_costs[name]


def _directive_cost(*nodes: _NodeWithDirectives) -> DocumentCost:
    return DocumentCost(directives=sum(len(node.directives or ()) for node in nodes))


# Twice what the largest request needs: a campaign of ten sets of 200 groups, with its limits.
MAX_VARIABLE_VALUES = 5_000


def has_too_many_values(variables: object) -> bool:
    """Whether there are more values, what lists and objects hold included."""
    count, rest = 0, [variables]
    while rest:
        value = rest.pop()
        if isinstance(value, dict | list):
            count += len(value)
            if count > MAX_VARIABLE_VALUES:
                return True
            rest.extend(value.values() if isinstance(value, dict) else value)
    return False
