"""The limit on field pairs that validation has to compare.

Fields with the same response key at the same place of the result must be mergeable (GraphQL, 5.3.2
Field Selection Merging). Validation compares every pair, so its cost grows with the square of their
number. This module counts the pairs first, with fragments expanded and all types taken together.
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

# Comparing them takes about 10 ms. Ten fragments with the same ten fields have 450 pairs.
MAX_FIELD_PAIRS = 3_000
# Visited fields; a field of a fragment counts once for each place that spreads it.
MAX_VISITED_FIELDS = 5_000

_SelectionSets = Sequence[SelectionSetNode]


def field_merge_excess(document: DocumentNode) -> str | None:
    """Describe the limit that a document exceeds, or return None.

    The complexity of the document must have been checked before.
    """
    visitor = _MergeCostVisitor(document)
    for definition in document.definitions:
        if isinstance(definition, ExecutableDefinitionNode):
            visitor.visit([definition.selection_set], frozenset())
        if visitor.fields > MAX_VISITED_FIELDS:
            return f"The operations of a document may have at most {MAX_VISITED_FIELDS} fields."
        if visitor.pairs > MAX_FIELD_PAIRS:
            return f"A document may have at most {MAX_FIELD_PAIRS} pairs of fields to merge."
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
        """Count the fields and pairs at one place of the result, and at the places below it."""
        by_key: dict[str, list[tuple[FieldNode, Set[str]]]] = defaultdict(list)
        for field, fragments in self._collect_fields(selection_sets, enclosing_fragments):
            by_key[(field.alias or field.name).value].append((field, fragments))
        for fields in by_key.values():
            self.fields += len(fields)
            self.pairs += len(fields) * (len(fields) - 1) // 2
            inner = [field.selection_set for field, _ in fields if field.selection_set]
            if inner and self.pairs <= MAX_FIELD_PAIRS and self.fields <= MAX_VISITED_FIELDS:
                self.visit(inner, frozenset().union(*(fragments for _, fragments in fields)))

    def _collect_fields(
        self, selection_sets: _SelectionSets, enclosing_fragments: Set[str]
    ) -> Iterator[tuple[FieldNode, Set[str]]]:
        # A fragment counts once at each place. Validation rejects fragments inside themselves.
        spread: set[str] = set(enclosing_fragments)
        pending: list[tuple[SelectionNode, Set[str]]] = [
            (node, enclosing_fragments) for each in selection_sets for node in each.selections
        ]
        while pending:
            node, fragments = pending.pop()
            if isinstance(node, FieldNode):
                yield node, fragments
                continue
            inner: SelectionSetNode | None = getattr(node, "selection_set", None)
            if isinstance(node, FragmentSpreadNode):
                name = node.name.value
                fragment = None if name in spread else self._fragments.get(name)
                spread.add(name)
                fragments = fragments | {name}
                inner = fragment.selection_set if fragment else None
            pending += [(each, fragments) for each in inner.selections] if inner else []
