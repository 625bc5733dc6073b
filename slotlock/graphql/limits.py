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
    GraphQLNamedType,
    GraphQLSchema,
    InlineFragmentNode,
    OperationDefinitionNode,
    SelectionNode,
    SelectionSetNode,
    VariableDefinitionNode,
    get_named_type,
    is_composite_type,
)

from slotlock.graphql.list_sizes import items

MAX_TEXT = 20_000
MAX_TOKENS = 1_000
# More than any limit; sums stop here, so that no bomb makes numbers of many digits.
TOO_MANY = 1_000_000


@dataclass(frozen=True, slots=True)
class Size:
    """What a selection comes to when every fragment in it is written out.

    `values` is what its answer can hold: every field, as often as the lists around it have items.
    """

    depth: int = 0
    fields: int = 0
    aliases: int = 0
    directives: int = 0
    roots: int = 0
    values: int = 0

    def beside(self, other: "Size") -> "Size":
        """Both selections together."""
        return Size(
            max(self.depth, other.depth),
            _sum(self.fields, other.fields),
            _sum(self.aliases, other.aliases),
            _sum(self.directives, other.directives),
            _sum(self.roots, other.roots),
            _sum(self.values, other.values),
        )


def _sum(one: int, other: int) -> int:
    return min(one + other, TOO_MANY)


_IN_WORDS = {
    "depth": "levels",
    "fields": "fields, with its fragments written out",
    "aliases": "aliases",
    "directives": "directives",
    "roots": "root fields",
    "values": "values to answer, lists at their longest",
}
LIMITS = Size(depth=10, fields=400, aliases=15, directives=20, roots=15, values=20_000)


_Directed = (
    SelectionNode | OperationDefinitionNode | FragmentDefinitionNode | VariableDefinitionNode
)


def excess(schema: GraphQLSchema, document: DocumentNode) -> str | None:
    """The first limit that a part of the document exceeds, in words; None if none is."""
    measure = _Measure(schema, document)
    for size in measure.all():
        for name in Size.__slots__:
            if getattr(size, name) > getattr(LIMITS, name):
                return f"A document has at most {getattr(LIMITS, name)} {_IN_WORDS[name]}."
    return None


class _Measure:
    def __init__(self, schema: GraphQLSchema, document: DocumentNode) -> None:
        self._schema = schema
        self._definitions = document.definitions
        self._fragments = {
            node.name.value: node
            for node in document.definitions
            if isinstance(node, FragmentDefinitionNode)
        }
        self._measured: dict[str, Size] = {}

    def all(self) -> Iterator[Size]:
        for node in self._definitions:
            if isinstance(node, OperationDefinitionNode):
                yield self._operation(node)
        # What no operation uses is refused by validation, at a price.
        for name in self._fragments.keys() - self._measured.keys():
            yield replace(self._fragment(name), roots=0)

    def _operation(self, node: OperationDefinitionNode) -> Size:
        size = _directives(node, *(node.variable_definitions or ()))
        root = self._schema.get_root_type(node.operation)
        return size.beside(self._selection(node.selection_set, root))

    def _selection(
        self, selection_set: SelectionSetNode | None, parent: GraphQLNamedType | None
    ) -> Size:
        size = Size()
        for node in selection_set.selections if selection_set else ():
            size = size.beside(_directives(node))
            match node:
                case FieldNode():
                    size = size.beside(self._field(node, parent))
                case InlineFragmentNode(type_condition=condition):
                    inner = self._schema.get_type(condition.name.value) if condition else parent
                    size = size.beside(self._selection(node.selection_set, inner))
                case FragmentSpreadNode():
                    size = size.beside(self._fragment(node.name.value))
        return size

    def _field(self, node: FieldNode, parent: GraphQLNamedType | None) -> Size:
        name = node.name.value
        # Validation refuses what is no field; until then it is one without lists.
        field = self._schema.get_field(parent, name) if is_composite_type(parent) else None
        inner = self._selection(node.selection_set, get_named_type(field.type) if field else None)
        # Introspection nests deeply by nature, and its answer is the same for everyone.
        depth = 0 if name.startswith("__") else inner.depth + 1
        aliases = _sum(inner.aliases, 1 if node.alias else 0)
        times = items(field, node, parent) if field and parent else 1
        values = min(times * _sum(inner.values, 1), TOO_MANY)
        return Size(depth, _sum(inner.fields, 1), aliases, inner.directives, 1, values)

    def _fragment(self, name: str) -> Size:
        if name not in self._measured:
            # A fragment inside itself counts as nothing here: validation refuses it afterwards.
            self._measured[name] = Size()
            if (fragment := self._fragments.get(name)) is not None:
                parent = self._schema.get_type(fragment.type_condition.name.value)
                size = self._selection(fragment.selection_set, parent)
                self._measured[name] = size.beside(_directives(fragment))
        return self._measured[name]


def _directives(*nodes: _Directed) -> Size:
    return Size(directives=sum(len(node.directives or ()) for node in nodes))
