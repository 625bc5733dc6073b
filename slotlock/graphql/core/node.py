"""The parts of GraphQL types: the interface of objects with an id, and fields that are properties.

A type with such fields is a view: it holds a value of the domain, and computes of it only the
fields that an operation selects.
"""

import sys
from collections.abc import Callable
from typing import TypeVar, cast

import strawberry
from strawberry import field
from strawberry.annotation import StrawberryAnnotation
from strawberry.types.field import StrawberryField

View = TypeVar("View")
Value = TypeVar("Value")


@strawberry.interface(description="An object that `node` returns again for its id.")
class Node:
    id: strawberry.ID = field(description="An opaque id, unique among all types.")


def property_field(*, description: str) -> Callable[[Callable[[View], Value]], Value]:
    """Declare a field whose value is the property that the decorated method computes.

    For Strawberry it is a plain attribute, which is read without a resolver.
    """

    def declare(read: Callable[[View], Value]) -> Value:
        annotation = StrawberryAnnotation(
            read.__annotations__["return"], namespace=sys.modules[read.__module__].__dict__
        )
        # `dataclass` sets the default of a field as the attribute of the class: the property.
        declared = StrawberryField(
            type_annotation=annotation, description=description, default=property(read)
        )
        declared.init = False
        return cast("Value", declared)

    return declare
