"""What is known of functions that Strawberry made: which of them need not be called.

A schema without Strawberry has none of these functions; its resolvers are all called.
"""

from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Any

from graphql import GraphQLField, GraphQLSchema
from strawberry.schema.schema_converter import GraphQLCoreConverter
from strawberry.types.base import StrawberryObjectDefinition, get_object_definition
from strawberry.types.cast import TYPE_CAST_ATTRIBUTE
from strawberry.types.field import StrawberryField
from strawberry.types.fields.resolver import StrawberryResolver

from slotlock.graphql.execution.compiled.strawberry_resolver import StrawberryCall

_CONVERTER = "strawberry.schema.schema_converter", "GraphQLCoreConverter"
_ATTRIBUTE_RESOLVER = "from_resolver.<locals>._get_basic_result"
_RESOLVERS = ("from_resolver.<locals>._async_resolver", "from_resolver.<locals>._resolver")
_TYPE_FUNCTIONS = (
    "from_object.<locals>._get_is_type_of.<locals>.is_type_of",
    "from_interface.<locals>._get_resolve_type.<locals>.resolve_type",
)
_UNION_FUNCTION = (
    "strawberry.types.union",
    "StrawberryUnion.get_type_resolver.<locals>._resolve_union_type",
)


def attribute_reader(definition: GraphQLField) -> Callable[[Any], Any] | None:
    """Return the reader of the attribute that a field shows; None for any other field."""
    field = definition.extensions.get(GraphQLCoreConverter.DEFINITION_BACKREF)
    if (
        isinstance(field, StrawberryField)
        and type(field).get_result is StrawberryField.get_result
        and field.default_resolver is getattr
        and _is_made_by_converter(definition.resolve, _ATTRIBUTE_RESOLVER)
    ):
        return attrgetter(field.python_name)
    return None


def direct_call(schema: GraphQLSchema, definition: GraphQLField) -> StrawberryCall | None:
    """Return the call of a resolver without Strawberry's wrapper; None if the wrapper does more.

    The wrapper converts arguments. It does more for fields with extensions, such as permissions,
    and in schemas with handlers of exceptions.
    """
    strawberry_schema = getattr(schema, "_strawberry_schema", None)
    field = definition.extensions.get(GraphQLCoreConverter.DEFINITION_BACKREF)
    if (
        strawberry_schema is None
        or not isinstance(field, StrawberryField)
        or type(field).get_result is not StrawberryField.get_result
        or field.base_resolver is None
        or type(field.base_resolver) is not StrawberryResolver
        or field.extensions
        or strawberry_schema.schema_converter.exception_handlers
        or not _is_made_by_converter(definition.resolve, *_RESOLVERS)
    ):
        return None
    return StrawberryCall.build(strawberry_schema.schema_converter, field, field.base_resolver)


def is_decided_by_type(function: object, value: object) -> bool:
    """Return whether a type resolver or predicate has the same result for all values of a type.

    Strawberry's functions look at the class of a value, at a cast of the value, and, for a generic
    class, at its attributes.
    """
    if not _is_made_by_converter(function, *_TYPE_FUNCTIONS) and (
        (getattr(function, "__module__", None), getattr(function, "__qualname__", None))
        != _UNION_FUNCTION
    ):
        return False
    definition: StrawberryObjectDefinition | None = get_object_definition(type(value))
    return definition is not None and not definition.is_graphql_generic and is_not_cast(value)


def is_not_cast(value: object) -> bool:
    """Return whether a value was not given another type by `strawberry.cast`."""
    return getattr(value, TYPE_CAST_ATTRIBUTE, None) is None


def are_not_cast(values: Iterable[object]) -> bool:
    """Return whether `is_not_cast` is true for each value."""
    return not [value for value in values if getattr(value, TYPE_CAST_ATTRIBUTE, None) is not None]


def _is_made_by_converter(function: object, *names: str) -> bool:
    module, converter = _CONVERTER
    return getattr(function, "__module__", None) == module and any(
        getattr(function, "__qualname__", None) == f"{converter}.{name}" for name in names
    )
