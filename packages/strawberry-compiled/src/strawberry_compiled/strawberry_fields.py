"""What is known of functions that Strawberry made, and how to do without their wrappers.

A schema without Strawberry has none of these functions; its resolvers are all called.
"""

from collections.abc import Callable, Iterable
from dataclasses import MISSING
from functools import cached_property
from inspect import iscoroutinefunction
from operator import attrgetter
from typing import Any

from graphql import FieldNode, GraphQLField, GraphQLResolveInfo, GraphQLSchema
from strawberry.relay.types import GlobalID
from strawberry.scalars import is_scalar
from strawberry.schema.schema_converter import GraphQLCoreConverter
from strawberry.types.base import (
    StrawberryList,
    StrawberryMaybe,
    StrawberryObjectDefinition,
    StrawberryOptional,
    StrawberryType,
    get_object_definition,
)
from strawberry.types.cast import TYPE_CAST_ATTRIBUTE
from strawberry.types.enum import StrawberryEnumDefinition, has_enum_definition
from strawberry.types.field import StrawberryField
from strawberry.types.fields.resolver import StrawberryResolver
from strawberry.types.info import Info
from strawberry.types.lazy_type import LazyType

from strawberry_compiled.execution import Execution, FieldInfo, ValuePath

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


def direct_call(schema: GraphQLSchema, definition: GraphQLField) -> "StrawberryCall | None":
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
    function = field.base_resolver.wrapped_func
    if isinstance(function, staticmethod | classmethod):
        return None
    if field.is_async and not iscoroutinefunction(function):
        return None
    try:
        return StrawberryCall(
            strawberry_schema.schema_converter, field, field.base_resolver, function
        )
    except RareInputError:
        return None


class CompiledInfo(Info[Any, Any]):
    """The `info` of a resolver: what graphql-core's contains is built for those that read it.

    `StrawberryCall` sets the attributes, because a constructor would be one more call for each
    resolver. `field_nodes` are the nodes of the field, the same list in each execution of a plan.
    """

    __slots__ = ("_execution", "_field_info", "_path", "context", "field_nodes")

    _execution: Execution
    _field_info: FieldInfo
    _path: ValuePath
    field_nodes: list[FieldNode]

    @cached_property
    def _raw_info(self) -> GraphQLResolveInfo[object]:  # type: ignore[override]
        return self._field_info.build(self._execution, self._path)


# Creates an info in C.
_new_info = object.__new__


class StrawberryCall:
    """Calls the resolver function of a field as Strawberry's wrapper does."""

    __slots__ = (
        "_arguments",
        "_field",
        "_function",
        "_info_class",
        "_info_name",
        "_is_async",
        "_passes_self",
        "_source_names",
    )

    def __init__(
        self,
        converter: GraphQLCoreConverter,
        field: StrawberryField,
        resolver: StrawberryResolver[Any],
        function: Callable[..., Any],
    ) -> None:
        self._field = field
        self._function: Callable[..., Any] = function
        # The name in GraphQL, the name of the parameter, and the conversion if there is one.
        self._arguments = [
            (
                converter.config.name_converter.from_argument(argument),
                argument.python_name,
                build_input_converter(converter, argument.type),
            )
            for argument in field.arguments
        ]
        self._info_class = converter.config.info_class
        self._is_async = field.is_async
        self._passes_self = resolver.self_parameter is not None
        self._source_names = [
            parameter.name
            for parameter in (resolver.parent_parameter, resolver.root_parameter)
            if parameter is not None
        ]
        self._info_name = resolver.info_parameter.name if resolver.info_parameter else None

    def __call__(
        self,
        source: Any,
        arguments: dict[str, Any],
        execution: Execution,
        field_info: FieldInfo,
        path: ValuePath,
    ) -> Any:
        """Call the resolver."""
        try:
            parameters = {}
            for name, python_name, convert in self._arguments:
                if name in arguments:
                    value = arguments[name]
                    parameters[python_name] = value if convert is None else convert(value)
            for source_name in self._source_names:
                parameters[source_name] = source
            if self._info_class is not Info:
                info = self._info_class(
                    _raw_info=field_info.build(execution, path), _field=self._field
                )
                if self._info_name is not None:
                    parameters[self._info_name] = info
            elif self._info_name is not None:
                parameters[self._info_name] = compiled = _new_info(CompiledInfo)
                compiled._execution = execution
                compiled._field_info = field_info
                compiled._path = path
                compiled._field = self._field
                compiled.context = execution.context  # type: ignore[misc]  # a slot, no property
                compiled.field_nodes = field_info.nodes
        except Exception as error:
            if self._is_async:  # the wrapper fails when it is awaited
                return _fail(error)
            raise
        if self._passes_self:
            return self._function(source, **parameters)
        return self._function(**parameters)


async def _fail(error: Exception) -> None:
    raise error


class RareInputError(Exception):
    """An argument has a type that only Strawberry converts.

    Such are `Maybe`, global ids, input types with `from_input`, and types that contain themselves.
    """


# Converts a value that graphql-core coerced to the value that the resolver expects.
InputConverter = Callable[[Any], Any]


def build_input_converter(
    converter: GraphQLCoreConverter,
    input_type: StrawberryType | type,
    ancestors: tuple[type, ...] = (),
) -> InputConverter | None:
    """Return the conversion to a type, whose null is null; None if all its values are unchanged.

    Raises:
        RareInputError: only Strawberry converts to the type.
    """
    if isinstance(input_type, StrawberryMaybe) or input_type is GlobalID:
        raise RareInputError
    if isinstance(input_type, StrawberryOptional):
        return build_input_converter(converter, input_type.of_type, ancestors)
    if isinstance(input_type, LazyType):
        return build_input_converter(converter, input_type.resolve_type(), ancestors)
    if isinstance(input_type, StrawberryList):
        return _build_list_converter(
            build_input_converter(converter, input_type.of_type, ancestors)
        )
    if (
        is_scalar(input_type, converter.scalar_registry)
        or isinstance(input_type, StrawberryEnumDefinition)
        or has_enum_definition(input_type)
    ):
        return None
    if not isinstance(input_type, type) or input_type in ancestors:
        raise RareInputError
    return _build_object_converter(converter, input_type, (*ancestors, input_type))


def _build_list_converter(convert_item: InputConverter | None) -> InputConverter:
    def convert(value: Any) -> Any:
        if value is None:
            return None
        # Also copied with unchanged items, because executions may share a default.
        return list(value) if convert_item is None else [convert_item(item) for item in value]

    return convert


def _build_object_converter(
    converter: GraphQLCoreConverter, input_type: type, ancestors: tuple[type, ...]
) -> InputConverter:
    definition = get_object_definition(input_type)
    if definition is None or not definition.is_input or definition.from_input is not None:
        raise RareInputError
    fields = [
        (
            converter.config.name_converter.from_field(field),
            field.python_name,
            build_input_converter(
                converter, field.resolve_type(type_definition=definition), ancestors
            ),
        )
        for field in definition.fields
    ]
    # Strawberry's implicit default of fields that have no other.
    defaults: dict[str, Any] = {
        field.python_name: None
        for field in definition.fields
        if field.default_value is MISSING and field.default_factory is MISSING
    }

    def convert(value: Any) -> Any:
        if value is None:
            return None
        parameters = defaults.copy()
        for name, python_name, convert_field in fields:
            if name in value:
                field_value = value[name]
                parameters[python_name] = (
                    field_value if convert_field is None else convert_field(field_value)
                )
        return input_type(**parameters)

    return convert


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
