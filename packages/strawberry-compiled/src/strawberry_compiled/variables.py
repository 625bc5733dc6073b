"""The conversion of variables, specialized for their types and made once for an operation.

A converter returns `Undefined` for an invalid value, as graphql-core's `coerce_input_value` does.
graphql-core then converts all variables again, and describes what is wrong.
"""

from collections.abc import Callable
from typing import Any

from graphql import (
    GraphQLArgument,
    GraphQLBoolean,
    GraphQLError,
    GraphQLID,
    GraphQLInputField,
    GraphQLInputObjectType,
    GraphQLInputType,
    GraphQLLeafType,
    GraphQLList,
    GraphQLNonNull,
    GraphQLSchema,
    GraphQLString,
    OperationDefinitionNode,
    Undefined,
    VariableDefinitionNode,
)
from graphql.execution.get_variable_signature import get_variable_signature
from graphql.execution.values import VariableValues, VariableValueSource, get_variable_values
from graphql.language.parser import MAX_NESTING_DEPTH
from graphql.pyutils import is_iterable
from graphql.utilities.coerce_input_value import (
    coerce_default_value,
    coerce_input_literal,
    coerce_input_value,
)

InputConverter = Callable[[Any], Any]

# Values of exactly these types are the same in JSON and in Python.
UNCHANGED_TYPES: tuple[tuple[GraphQLLeafType, type], ...] = (
    (GraphQLString, str),
    (GraphQLID, str),
    (GraphQLBoolean, bool),
)


class UnsupportedOperationError(Exception):
    """The operation uses a feature that plans do not have."""


class Absent:
    """The type of the marker for a value that is neither given nor has a default."""

    __slots__ = ()


ABSENT = Absent()


class VariablesConverter:
    """The conversion of all variables of an operation."""

    __slots__ = ("_definitions", "_hide_suggestions", "_max_errors", "_schema", "_variables")

    def __init__(
        self,
        schema: GraphQLSchema,
        operation: OperationDefinitionNode,
        *,
        hide_suggestions: bool,
        max_errors: int | None,
    ) -> None:
        self._schema = schema
        self._definitions = operation.variable_definitions or ()
        self._variables = [_Variable(schema, one) for one in self._definitions]
        self._hide_suggestions = hide_suggestions
        self._max_errors = max_errors

    def convert(self, inputs: dict[str, Any]) -> dict[str, Any] | list[GraphQLError]:
        """Return the values of the variables, or the errors of graphql-core."""
        coerced: dict[str, Any] = {}
        try:
            for variable in self._variables:
                name = variable.name
                value = inputs.get(name, Undefined)
                if value is Undefined:
                    value = variable.convert_default()
                elif type(value) is not variable.unchanged_type:
                    value = variable.convert(value)
                if value is Undefined:
                    return self._convert_slowly(inputs)
                if value is not ABSENT:
                    coerced[name] = value
        except Exception:
            return self._convert_slowly(inputs)
        return coerced

    def _convert_slowly(self, inputs: dict[str, Any]) -> dict[str, Any] | list[GraphQLError]:
        converted = get_variable_values(
            self._schema,
            self._definitions,
            inputs,
            max_errors=self._max_errors,
            hide_suggestions=self._hide_suggestions,
        )
        return converted if isinstance(converted, list) else converted.coerced

    def describe(self, inputs: dict[str, Any], coerced: dict[str, Any]) -> VariableValues:
        """Return the values with their sources, as graphql-core passes them to resolvers."""
        sources = {
            each.name: VariableValueSource(each.signature, inputs[each.name])
            if each.name in inputs
            else each.source_without_value
            for each in self._variables
        }
        return VariableValues(sources, coerced)


class _Variable:
    """The conversion of one variable."""

    __slots__ = (
        "_default",
        "convert",
        "name",
        "signature",
        "source_without_value",
        "unchanged_type",
    )

    def __init__(self, schema: GraphQLSchema, definition: VariableDefinitionNode) -> None:
        signature = get_variable_signature(schema, definition)
        if isinstance(signature, GraphQLError):
            raise UnsupportedOperationError(signature.message)
        if _nesting_depth(signature.type, ()) > MAX_NESTING_DEPTH:
            # No type bounds its values, so graphql-core counts their levels first.
            raise UnsupportedOperationError(f"{signature.type} can contain itself")
        self.name = signature.name
        self.signature = signature
        self.source_without_value = VariableValueSource(signature)
        self.convert = _build_converter(signature.type)
        # A value of exactly this type needs no conversion; None if there is no such type.
        self.unchanged_type = _unchanged_type(signature.type)
        self._default = definition.default_value

    def convert_default(self) -> Any:
        """Return the default, `ABSENT` if there is none, or `Undefined` if there must be one."""
        if self._default is None:
            return Undefined if isinstance(self.signature.type, GraphQLNonNull) else ABSENT
        # Converted for each execution, because a resolver may change a list or an object.
        return coerce_input_literal(self._default, self.signature.type)


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


def _build_converter(input_type: GraphQLInputType, of_null: Any = None) -> InputConverter:
    """Return the converter for a type, which returns `of_null` for null."""
    if isinstance(input_type, GraphQLNonNull):
        return _build_converter(input_type.of_type, Undefined)
    if isinstance(input_type, GraphQLList):
        return _build_list_converter(_build_converter(input_type.of_type), of_null)
    if isinstance(input_type, GraphQLInputObjectType):
        return _build_object_converter(input_type, of_null)
    return _build_leaf_converter(input_type, of_null)


def _build_leaf_converter(leaf_type: GraphQLLeafType, of_null: Any) -> InputConverter:
    coerce = leaf_type.coerce_input_value
    unchanged_type = unchanged_type_of(leaf_type)

    def convert(value: Any) -> Any:
        if type(value) is unchanged_type:
            return value
        if value is None:
            return of_null
        try:
            return coerce(value)
        except Exception:
            return Undefined

    return convert


def _build_list_converter(convert_item: InputConverter, of_null: Any) -> InputConverter:
    def convert(value: Any) -> Any:
        if value is None:
            return of_null
        # A value that is no list is a list of one.
        items = [convert_item(item) for item in (value if is_iterable(value) else [value])]
        return Undefined if any(item is Undefined for item in items) else items

    return convert


def _build_object_converter(input_type: GraphQLInputObjectType, of_null: Any) -> InputConverter:
    names, create = input_type.fields.keys(), input_type.out_type
    fields = [
        (name, field.out_name or name, _build_converter(field.type), absent_value(field))
        for name, field in input_type.fields.items()
    ]

    def convert(value: Any) -> Any:
        if value is None:
            return of_null
        if not isinstance(value, dict) or not value.keys() <= names:
            return Undefined
        converted: dict[str, Any] = {}
        for name, out_name, convert_field, default in fields:
            field_value = convert_field(value[name]) if name in value else default
            if field_value is Undefined:
                return Undefined
            if field_value is not ABSENT:
                converted[out_name] = field_value
        return create(converted)

    def convert_one_of(value: Any) -> Any:
        return of_null if value is None else coerce_input_value(value, input_type)

    return convert_one_of if input_type.is_one_of else convert


def unchanged_type_of(leaf_type: GraphQLLeafType) -> type | None:
    """Return the Python type whose values are their own result for a scalar."""
    return next((known for scalar, known in UNCHANGED_TYPES if scalar is leaf_type), None)


def _unchanged_type(input_type: GraphQLInputType) -> type | None:
    nullable = input_type.of_type if isinstance(input_type, GraphQLNonNull) else input_type
    return next((known for scalar, known in UNCHANGED_TYPES if scalar is nullable), None)


def absent_value(definition: GraphQLArgument | GraphQLInputField) -> Any:
    """Return what is not given: a default, `ABSENT`, or `Undefined` if it must be given."""
    default = coerce_default_value(definition)
    if default is Undefined and not isinstance(definition.type, GraphQLNonNull):
        return ABSENT
    return default
