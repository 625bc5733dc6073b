"""How large a document may be, measured in one pass that visits each node once.

Fragments are measured once and remembered, so a bomb of nested fragments costs what it weighs on
the wire, not what it expands to. This runs before validation, whose cost is not linear.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from graphql import (
    DocumentNode,
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    InlineFragmentNode,
    OperationDefinitionNode,
    SelectionSetNode,
)

MAX_TEXT = 20_000
MAX_TOKENS = 1_000


@dataclass(frozen=True, slots=True)
class Size:
    """What a selection comes to when every fragment in it is written out."""

    depth: int = 0
    fields: int = 0
    aliases: int = 0
    directives: int = 0
    roots: int = 0

    def beside(self, other: "Size") -> "Size":
        """Both selections together."""
        return Size(
            max(self.depth, other.depth),
            self.fields + other.fields,
            self.aliases + other.aliases,
            self.directives + other.directives,
            self.roots + other.roots,
        )


_IN_WORDS = {
    "depth": "levels",
    "fields": "fields, with its fragments written out",
    "aliases": "aliases",
    "directives": "directives",
    "roots": "root fields",
}
LIMITS = Size(depth=10, fields=400, aliases=15, directives=20, roots=15)


def excess(document: DocumentNode) -> str | None:
    """The first limit that an operation of the document exceeds, in words; None if none is."""
    fragments = {
        node.name.value: node
        for node in document.definitions
        if isinstance(node, FragmentDefinitionNode)
    }
    measure = _Measure(fragments)
    for node in document.definitions:
        if isinstance(node, OperationDefinitionNode):
            size = measure.selection(node.selection_set)
            for name in Size.__slots__:
                if getattr(size, name) > getattr(LIMITS, name):
                    return f"A document has at most {getattr(LIMITS, name)} {_IN_WORDS[name]}."
    return None


class _Measure:
    def __init__(self, fragments: dict[str, FragmentDefinitionNode]) -> None:
        self._fragments = fragments
        self._measured: dict[str, Size] = {}

    def selection(self, selection_set: SelectionSetNode | None) -> Size:
        size = Size()
        for part in self._parts(selection_set):
            size = size.beside(part)
        return size

    def _parts(self, selection_set: SelectionSetNode | None) -> Iterator[Size]:
        for node in selection_set.selections if selection_set else ():
            yield Size(directives=len(node.directives or ()))
            match node:
                case FieldNode():
                    yield self._field(node)
                case InlineFragmentNode():
                    yield self.selection(node.selection_set)
                case FragmentSpreadNode():
                    yield self._fragment(node.name.value)

    def _field(self, node: FieldNode) -> Size:
        inner = self.selection(node.selection_set)
        # Introspection nests deeply by nature, and its answer is the same for everyone.
        depth = 0 if node.name.value.startswith("__") else inner.depth + 1
        aliased = 1 if node.alias else 0
        return Size(depth, inner.fields + 1, inner.aliases + aliased, inner.directives, 1)

    def _fragment(self, name: str) -> Size:
        if name not in self._measured:
            # A fragment inside itself counts as nothing here: validation refuses it afterwards.
            self._measured[name] = Size()
            fragment = self._fragments.get(name)
            self._measured[name] = self.selection(fragment.selection_set if fragment else None)
        return self._measured[name]
