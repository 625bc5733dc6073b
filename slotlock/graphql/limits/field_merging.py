"""How many pairs of fields validation has to compare: those that answer under the same name.

GraphQL demands of each pair that both can be answered in one place (Field Selection Merging,
5.3.2), so that looking costs the square of what stands under one name. Counted here for each place
of the answer, with fragments written out and all types taken together.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set

from graphql import (
    DocumentNode,
    ExecutableDefinitionNode,
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    SelectionNode,
    SelectionSetNode,
)

# Some 10 ms. Ten fragments that all ask for the same ten fields have 450.
MAX_FIELD_PAIRS = 3_000
# Fields looked at, each as often as fragments bring it to an operation.
MAX_VISITED_FIELDS = 5_000

_SelectionSets = Sequence[SelectionSetNode]


def field_merge_excess(document: DocumentNode) -> str | None:
    """In words that there are more pairs than may be, or None. The document has a size for it."""
    looked = _MergeCostVisitor(document)
    for definition in document.definitions:
        if isinstance(definition, ExecutableDefinitionNode):
            looked.visit([definition.selection_set], frozenset())
        if looked.fields > MAX_VISITED_FIELDS:
            return (
                f"The operations of a document have at most {MAX_VISITED_FIELDS} fields together."
            )
        if looked.pairs > MAX_FIELD_PAIRS:
            return (
                f"A document has at most {MAX_FIELD_PAIRS} pairs of fields "
                "that answer in one place."
            )
    return None


class _MergeCostVisitor:
    def __init__(self, document: DocumentNode) -> None:
        self.pairs = 0
        self.fields = 0
        self._fragments: Mapping[str, FragmentDefinitionNode] = {
            node.name.value: node
            for node in document.definitions
            if isinstance(node, FragmentDefinitionNode)
        }

    def visit(self, selection_sets: _SelectionSets, enclosing_fragments: Set[str]) -> None:
        """Count what is answered in one place, and in the places inside it."""
        by_key: dict[str, list[tuple[FieldNode, Set[str]]]] = defaultdict(list)
        for field, where in self._collect_fields(selection_sets, enclosing_fragments):
            by_key[(field.alias or field.name).value].append((field, where))
        for fields in by_key.values():
            self.fields += len(fields)
            self.pairs += len(fields) * (len(fields) - 1) // 2
            inner = [field.selection_set for field, _ in fields if field.selection_set]
            if inner and self.pairs <= MAX_FIELD_PAIRS and self.fields <= MAX_VISITED_FIELDS:
                self.visit(inner, frozenset().union(*(where for _, where in fields)))

    def _collect_fields(
        self, selection_sets: _SelectionSets, enclosing_fragments: Set[str]
    ) -> Iterator[tuple[FieldNode, Set[str]]]:
        # Once a place, whoever spreads it; inside itself it is refused by validation.
        spread: set[str] = set(enclosing_fragments)
        waiting: list[tuple[SelectionNode, Set[str]]] = [
            (node, enclosing_fragments) for each in selection_sets for node in each.selections
        ]
        while waiting:
            node, where = waiting.pop()
            if isinstance(node, FieldNode):
                yield node, where
                continue
            inner: SelectionSetNode | None = getattr(node, "selection_set", None)
            if isinstance(node, FragmentSpreadNode):
                name = node.name.value
                fragment = None if name in spread else self._fragments.get(name)
                spread.add(name)
                where = where | {name}
                inner = fragment.selection_set if fragment else None
            waiting += [(each, where) for each in inner.selections] if inner else []
