"""The parts of GraphQL types: the interface of objects with an id, and fields that are properties.

A type with such fields is a view: it holds a value of the domain, and computes of it only the
fields that an operation selects. A resolver can tell which these are before it loads the value.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any, TypeVar, cast, overload

import strawberry
from graphql import (
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    InlineFragmentNode,
    SelectionNode,
)
from strawberry import field
from strawberry.annotation import StrawberryAnnotation
from strawberry.types.field import StrawberryField

from strawberry_compiled import CompiledInfo

View = TypeVar("View")
Value = TypeVar("Value")

MAX_REMEMBERED = 5_000

# By the identity of the list of nodes, which the plan of an operation keeps. The list is stored
# with the names, so that no other list can get its identity.
_remembered: dict[int, tuple[Sequence[FieldNode], frozenset[str]]] = {}


@strawberry.interface(description="An object that `node` returns again for its id.")
class Node:
    id: strawberry.ID = field(description="An opaque id, unique among all types.")


def property_field(
    *, description: str, deprecation_reason: str | None = None
) -> Callable[[Callable[[View], Value]], Value]:
    """Declare a field whose value is the property that the decorated method computes.

    For Strawberry it is a plain attribute, which is read without a resolver.
    """

    def declare(read: Callable[[View], Value]) -> Value:
        annotation = StrawberryAnnotation(
            read.__annotations__["return"], namespace=sys.modules[read.__module__].__dict__
        )
        # `dataclass` sets the default of a field as the attribute of the class: the property.
        declared = StrawberryField(
            type_annotation=annotation,
            description=description,
            deprecation_reason=deprecation_reason,
            default=property(read),
        )
        declared.init = False
        return cast("Value", declared)

    return declare


@overload
def attribute_field(path: str, shown_as: type[Value], description: str) -> Value: ...
@overload
def attribute_field(path: str, shown_as: object, description: str) -> Any: ...
def attribute_field(path: str, shown_as: object, description: str) -> Any:
    """Declare a field whose value is the attribute at a dotted path, read without a Python call."""
    annotation = StrawberryAnnotation(shown_as)
    declared = StrawberryField(
        type_annotation=annotation, description=description, default=property(attrgetter(path))
    )
    declared.init = False
    return declared


def selected_names(info: strawberry.Info[Any, Any]) -> frozenset[str]:
    """Return the names that are selected anywhere below the resolved field."""
    nodes = info.field_nodes if type(info) is CompiledInfo else info._raw_info.field_nodes
    known = _remembered.get(id(nodes))
    if known is not None:
        return known[1]
    names = names_below(nodes, info._raw_info.fragments)
    if len(_remembered) >= MAX_REMEMBERED:
        _remembered.clear()
    _remembered[id(nodes)] = nodes, names
    return names


def names_below(
    nodes: Sequence[FieldNode], fragments: Mapping[str, FragmentDefinitionNode]
) -> frozenset[str]:
    """Return the names that are selected anywhere below these fields.

    That may be more than is needed: a name counts at any depth, and also where `@skip` or
    `@include` leaves it out.
    """
    names: set[str] = set()
    spread: set[str] = set()
    pending: list[SelectionNode] = []
    for parent in nodes:
        if parent.selection_set is not None:
            pending += parent.selection_set.selections
    while pending:
        node = pending.pop()
        if isinstance(node, FieldNode):
            names.add(node.name.value)
            inner = node.selection_set
        elif isinstance(node, InlineFragmentNode):
            inner = node.selection_set
        elif isinstance(node, FragmentSpreadNode) and node.name.value not in spread:
            spread.add(node.name.value)
            inner = fragments[node.name.value].selection_set
        else:
            continue
        if inner is not None:
            pending += inner.selections
    return frozenset(names)
