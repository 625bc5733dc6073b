"""The call of a Strawberry resolver: its arguments and inputs, converted as Strawberry does."""

from collections.abc import Callable
from dataclasses import MISSING
from inspect import iscoroutinefunction
from typing import Any

from graphql import GraphQLResolveInfo
from strawberry.relay.types import GlobalID
from strawberry.scalars import is_scalar
from strawberry.schema.schema_converter import GraphQLCoreConverter
from strawberry.types.base import (
    StrawberryList,
    StrawberryMaybe,
    StrawberryOptional,
    StrawberryType,
    get_object_definition,
)
from strawberry.types.enum import StrawberryEnumDefinition, has_enum_definition
from strawberry.types.field import StrawberryField
from strawberry.types.fields.resolver import StrawberryResolver
from strawberry.types.info import Info
from strawberry.types.lazy_type import LazyType

# Converts a value that graphql-core coerced to the value that the resolver expects.
InputBuilder = Callable[[Any], Any]


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
        field: StrawberryField,
        resolver: StrawberryResolver[Any],
        function: Callable[..., Any],
        arguments: list[tuple[str, str, InputBuilder | None]],
        info_class: type[Info],
    ) -> None:
        self._field = field
        self._function: Callable[..., Any] = function
        # The name in GraphQL, the name of the parameter, and the conversion if there is one.
        self._arguments = arguments
        self._info_class = info_class
        self._is_async = field.is_async
        self._passes_self = resolver.self_parameter is not None
        self._source_names = [
            parameter.name
            for parameter in (resolver.parent_parameter, resolver.root_parameter)
            if parameter is not None
        ]
        self._info_name = resolver.info_parameter.name if resolver.info_parameter else None

    @classmethod
    def build(
        cls,
        converter: GraphQLCoreConverter,
        field: StrawberryField,
        resolver: StrawberryResolver[Any],
    ) -> "StrawberryCall | None":
        """Build the call; None if an argument or the resolver is of a rare kind."""
        function = resolver.wrapped_func
        if isinstance(function, staticmethod | classmethod):
            return None
        if field.is_async and not iscoroutinefunction(function):
            return None
        arguments = []
        for argument in field.arguments:
            build_input = input_builder(converter, argument.type)
            if build_input is None:
                return None
            name = converter.config.name_converter.from_argument(argument)
            is_unchanged = isinstance(build_input, UnchangedBuilder)
            arguments.append((name, argument.python_name, None if is_unchanged else build_input))
        return cls(field, resolver, function, arguments, converter.config.info_class)

    @property
    def needs_info(self) -> bool:
        """Whether the resolver has an `info` parameter, or a class of its own for it."""
        return self._info_name is not None or self._info_class is not Info

    def __call__(
        self, source: Any, info: GraphQLResolveInfo[object] | None, arguments: dict[str, Any]
    ) -> Any:
        """Call the resolver. `info` is None if it is not needed."""
        try:
            parameters = {
                python_name: arguments[name] if build is None else build(arguments[name])
                for name, python_name, build in self._arguments
                if name in arguments
            }
            for source_name in self._source_names:
                parameters[source_name] = source
            if info is not None:
                strawberry_info = self._info_class(_raw_info=info, _field=self._field)
                if self._info_name is not None:
                    parameters[self._info_name] = strawberry_info
        except Exception as error:
            if self._is_async:  # the wrapper fails when it is awaited
                return _fail(error)
            raise
        if self._passes_self:
            return self._function(source, **parameters)
        return self._function(**parameters)


async def _fail(error: Exception) -> None:
    raise error


class UnchangedBuilder:
    """Returns a value as it is."""

    __slots__ = ()

    def __call__(self, value: Any) -> Any:
        """Return the value."""
        return value


class LeafListBuilder:
    """Copies a list of leaf values, because executions may share a default."""

    __slots__ = ()

    def __call__(self, value: Any) -> Any:
        """Return the copy; null stays null."""
        return None if value is None else list(value)


class ListBuilder:
    """Builds the items of a list."""

    __slots__ = ("_build_item",)

    def __init__(self, build_item: InputBuilder) -> None:
        self._build_item = build_item

    def __call__(self, value: Any) -> Any:
        """Return the list; null stays null."""
        return None if value is None else [self._build_item(item) for item in value]


class InputObjectBuilder:
    """Builds an instance of an input type."""

    __slots__ = ("_defaults", "_fields", "_type")

    def __init__(
        self,
        input_type: type,
        defaults: dict[str, None],
        fields: list[tuple[str, str, InputBuilder]],
    ) -> None:
        self._type = input_type
        self._defaults = defaults
        self._fields = fields

    def __call__(self, value: Any) -> Any:
        """Return the instance; null stays null."""
        if value is None:
            return None
        parameters: dict[str, Any] = dict(self._defaults)
        for name, python_name, build in self._fields:
            if name in value:
                parameters[python_name] = build(value[name])
        return self._type(**parameters)


def input_builder(
    converter: GraphQLCoreConverter,
    input_type: StrawberryType | type,
    ancestors: tuple[type, ...] = (),
) -> InputBuilder | None:
    """Return the conversion to a type; None for a rare kind of type.

    Rare are `Maybe`, global ids, input types with `from_input`, and types that contain themselves.
    """
    if isinstance(input_type, StrawberryMaybe) or input_type is GlobalID:
        return None
    if isinstance(input_type, StrawberryOptional):
        return input_builder(converter, input_type.of_type, ancestors)
    if isinstance(input_type, LazyType):
        return input_builder(converter, input_type.resolve_type(), ancestors)
    if isinstance(input_type, StrawberryList):
        build_item = input_builder(converter, input_type.of_type, ancestors)
        if build_item is None:
            return None
        return (
            LeafListBuilder()
            if isinstance(build_item, UnchangedBuilder)
            else ListBuilder(build_item)
        )
    if _is_leaf(converter, input_type):
        return UnchangedBuilder()
    if isinstance(input_type, type) and input_type not in ancestors:
        return _input_object_builder(converter, input_type, (*ancestors, input_type))
    return None


def _is_leaf(converter: GraphQLCoreConverter, input_type: StrawberryType | type) -> bool:
    return (
        is_scalar(input_type, converter.scalar_registry)
        or isinstance(input_type, StrawberryEnumDefinition)
        or has_enum_definition(input_type)
    )


def _input_object_builder(
    converter: GraphQLCoreConverter, input_type: type, ancestors: tuple[type, ...]
) -> InputBuilder | None:
    definition = get_object_definition(input_type)
    if definition is None or not definition.is_input or definition.from_input is not None:
        return None
    fields = []
    for field in definition.fields:
        field_type = field.resolve_type(type_definition=definition)
        build_field = input_builder(converter, field_type, ancestors)
        if build_field is None:
            return None
        name = converter.config.name_converter.from_field(field)
        fields.append((name, field.python_name, build_field))
    # Strawberry's implicit default of fields that have no other.
    defaults = {
        field.python_name: None
        for field in definition.fields
        if field.default_value is MISSING and field.default_factory is MISSING
    }
    return InputObjectBuilder(input_type, defaults, fields)
