"""Converters of input values, specialized for their types: what a variable's value becomes.

A converter returns `Undefined` for an invalid value, as graphql-core's `coerce_input_value` does.
The caller then repeats the conversion with graphql-core, which describes what is wrong.
"""

from collections.abc import Callable
from typing import Any

from graphql import (
    GraphQLInputField,
    GraphQLInputObjectType,
    GraphQLInputType,
    GraphQLList,
    GraphQLNonNull,
    Undefined,
)
from graphql.language.parser import MAX_NESTING_DEPTH
from graphql.pyutils import is_iterable
from graphql.utilities.coerce_input_value import coerce_default_value, coerce_input_value

InputConverter = Callable[[Any], Any]


def build_input_converter(input_type: GraphQLInputType) -> InputConverter | None:
    """Return the converter for a type; None for a type that can contain itself.

    Values of such types are bounded by no type, so graphql-core counts their levels first.
    """
    if _nesting_depth(input_type, ()) > MAX_NESTING_DEPTH:
        return None
    return _build_converter(input_type)


def _nesting_depth(input_type: GraphQLInputType, ancestors: tuple[str, ...]) -> int:
    if isinstance(input_type, GraphQLNonNull):
        return _nesting_depth(input_type.of_type, ancestors)
    if isinstance(input_type, GraphQLList):
        return 1 + _nesting_depth(input_type.of_type, ancestors)
    if isinstance(input_type, GraphQLInputObjectType):
        if input_type.name in ancestors:
            return MAX_NESTING_DEPTH + 1
        path = (*ancestors, input_type.name)
        return 1 + max(_nesting_depth(field.type, path) for field in input_type.fields.values())
    return 0


def _build_converter(input_type: GraphQLInputType) -> InputConverter:
    if isinstance(input_type, GraphQLNonNull):
        return NonNullConverter(_build_converter(input_type.of_type))
    if isinstance(input_type, GraphQLList):
        return ListConverter(_build_converter(input_type.of_type))
    if isinstance(input_type, GraphQLInputObjectType):
        return InputObjectConverter(input_type)
    return LeafConverter(input_type.coerce_input_value)


class LeafConverter:
    """Converts a value of a scalar or an enum; null stays null."""

    __slots__ = ("_coerce",)

    def __init__(self, coerce: Callable[[Any], Any]) -> None:
        self._coerce = coerce

    def __call__(self, value: Any) -> Any:
        """Return the converted value, or `Undefined`."""
        if value is None:
            return None
        try:
            return self._coerce(value)
        except Exception:
            return Undefined


class NonNullConverter:
    """Rejects null."""

    __slots__ = ("_convert",)

    def __init__(self, convert: InputConverter) -> None:
        self._convert = convert

    def __call__(self, value: Any) -> Any:
        """Return the converted value, or `Undefined`."""
        return Undefined if value is None else self._convert(value)


class ListConverter:
    """Converts each item of a list; a value that is no list is a list of one."""

    __slots__ = ("_convert",)

    def __init__(self, convert: InputConverter) -> None:
        self._convert = convert

    def __call__(self, value: Any) -> Any:
        """Return the converted list, or `Undefined`."""
        if value is None:
            return None
        items = value if is_iterable(value) else [value]
        converted = [self._convert(item) for item in items]
        return Undefined if any(item is Undefined for item in converted) else converted


class InputObjectConverter:
    """Converts an input object: each field by its own converter, absent fields by default."""

    __slots__ = ("_fields", "_is_one_of", "_names", "_out_type", "_type")

    def __init__(self, input_type: GraphQLInputObjectType) -> None:
        self._type = input_type
        self._is_one_of = input_type.is_one_of
        self._names = input_type.fields.keys()
        self._fields = [
            (name, field.out_name or name, _build_converter(field.type), field)
            for name, field in input_type.fields.items()
        ]
        self._out_type = input_type.out_type

    def __call__(self, value: Any) -> Any:
        """Return the converted object, or `Undefined`."""
        if value is None:
            return None
        if self._is_one_of:
            return coerce_input_value(value, self._type)
        if not isinstance(value, dict) or not value.keys() <= self._names:
            return Undefined
        converted: dict[str, Any] = {}
        for name, out_name, convert, field in self._fields:
            field_value = convert(value[name]) if name in value else absent_field_value(field)
            if field_value is Undefined:
                if name in value or is_required(field):
                    return Undefined
            else:
                converted[out_name] = field_value
        return self._out_type(converted)


def is_required(field: GraphQLInputField) -> bool:
    """Return whether a field of an input object must be given."""
    return (
        isinstance(field.type, GraphQLNonNull)
        and field.default is None
        and field.default_value is Undefined
    )


def absent_field_value(field: GraphQLInputField) -> Any:
    """Return the default of a field of an input object; `Undefined` if it has none."""
    return coerce_default_value(field)
