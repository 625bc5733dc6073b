"""The conversion of the arguments of a field, made once from the document and the schema.

A converter returns `Undefined` for an invalid value. graphql-core then converts the arguments
again, and raises the error that describes what is wrong.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from graphql import (
    FieldNode,
    GraphQLArgument,
    GraphQLEnumType,
    GraphQLField,
    GraphQLInputField,
    GraphQLInputObjectType,
    GraphQLInputType,
    GraphQLList,
    GraphQLNonNull,
    ListValueNode,
    NullValueNode,
    ObjectValueNode,
    Undefined,
    ValueNode,
    VariableNode,
    get_argument_values,
    is_specified_scalar_type,
)
from graphql.execution.values import VariableValues
from graphql.language import Visitor, visit
from graphql.utilities.coerce_input_value import coerce_input_literal

from strawberry_compiled.variables import ABSENT, absent_value

Variables = Mapping[str, Any]
LiteralConverter = Callable[[Variables], Any]
# Returns the arguments for a resolver, or `Undefined`.
ConvertArguments = Callable[[Variables], Any]


@dataclass(frozen=True, slots=True)
class Constant:
    """A value that no execution can change, or `ABSENT`."""

    value: Any


class ArgumentsConverter:
    """The conversion of all arguments of a field in a document."""

    __slots__ = ("_field", "_hide_suggestions", "_node", "convert")

    def __init__(self, field: GraphQLField, node: FieldNode, *, hide_suggestions: bool) -> None:
        self._field = field
        self._node = node
        self._hide_suggestions = hide_suggestions
        values = {one.name.value: one.value for one in node.arguments or ()}
        # None if the field has no arguments.
        self.convert: ConvertArguments | None = (
            _build_fields_converter(field.args, values) if field.args else None
        )

    def convert_slowly(self, variables: VariableValues) -> dict[str, Any]:
        """Return the arguments, or raise the error of graphql-core for an invalid value."""
        return get_argument_values(self._field, self._node, variables, None, self._hide_suggestions)


def _build_fields_converter(
    definitions: Mapping[str, GraphQLArgument] | Mapping[str, GraphQLInputField],
    values: Mapping[str, ValueNode],
) -> LiteralConverter:
    """Return the converter of arguments, or of the fields of an input object, in their order."""
    template: dict[str, Any] = {}
    converters: list[tuple[str, LiteralConverter]] = []
    variable_fields: list[tuple[str, str, Any, bool]] = []
    for name, definition in definitions.items():
        node = values.get(name)
        out_name = definition.out_name or name
        if isinstance(node, VariableNode):
            template[out_name] = None
            is_non_null = isinstance(definition.type, GraphQLNonNull)
            default = absent_value(definition)
            variable_fields.append((out_name, node.name.value, default, is_non_null))
            continue
        literal = _build_value(definition, node)
        if not isinstance(literal, Constant):
            template[out_name] = None
            converters.append((out_name, literal))
        elif literal.value is not ABSENT:
            template[out_name] = literal.value

    return _merge_converter(template, variable_fields, converters)


def _merge_converter(
    template: dict[str, Any],
    variable_fields: list[tuple[str, str, Any, bool]],
    converters: list[tuple[str, LiteralConverter]],
) -> LiteralConverter:
    """Return the converter that fills in the variables, and what depends on variables."""

    def convert(variables: Variables) -> Any:
        converted = template.copy()
        for name, variable, default, is_non_null in variable_fields:
            value = variables.get(variable, default)
            if value is Undefined or (value is None and is_non_null):
                return Undefined
            if value is ABSENT:
                del converted[name]
            else:
                converted[name] = value
        for name, convert_value in converters:
            value = convert_value(variables)
            if value is Undefined:
                return Undefined
            if value is ABSENT:
                del converted[name]
            else:
                converted[name] = value
        return converted

    return convert


def _build_value(
    definition: GraphQLArgument | GraphQLInputField, node: ValueNode | None
) -> Constant | LiteralConverter:
    if node is not None:
        return _build_literal(node, definition.type)
    default = absent_value(definition)
    return _unconvertible if default is Undefined else Constant(default)


def _build_literal(node: ValueNode, input_type: GraphQLInputType) -> Constant | LiteralConverter:
    if isinstance(input_type, GraphQLNonNull):
        if isinstance(node, NullValueNode):
            return _unconvertible
        return _build_literal(node, input_type.of_type)
    if isinstance(node, NullValueNode):
        return Constant(None)
    if isinstance(input_type, GraphQLList):
        return _build_list(node, input_type.of_type)
    if isinstance(input_type, GraphQLInputObjectType):
        return _build_object(node, input_type)
    if isinstance(node, ListValueNode | ObjectValueNode) and _contains_variable(node):
        return _unconvertible
    if is_specified_scalar_type(input_type) or isinstance(input_type, GraphQLEnumType):
        value = coerce_input_literal(node, input_type)
        return _unconvertible if value is Undefined else Constant(value)
    # Converted for each execution: values of custom scalars may be mutable.
    return lambda _variables: coerce_input_literal(node, input_type)


def _build_list(node: ValueNode, item_type: GraphQLInputType) -> LiteralConverter:
    nodes = node.values if isinstance(node, ListValueNode) else [node]
    converters = [_build_item(each, item_type) for each in nodes]

    def convert(variables: Variables) -> Any:
        items = [convert_item(variables) for convert_item in converters]
        return Undefined if any(item is Undefined for item in items) else items

    return convert


def _build_item(node: ValueNode, item_type: GraphQLInputType) -> LiteralConverter:
    if isinstance(node, VariableNode):
        # An item without a value is null.
        name = node.name.value
        of_null = Undefined if isinstance(item_type, GraphQLNonNull) else None
        return lambda variables: of_null if (item := variables.get(name)) is None else item
    literal = _build_literal(node, item_type)
    if isinstance(literal, Constant):
        value = literal.value
        return lambda _variables: value
    return literal


def _build_object(node: ValueNode, input_type: GraphQLInputObjectType) -> LiteralConverter:
    if not isinstance(node, ObjectValueNode) or input_type.is_one_of:
        return _unconvertible
    values = {field.name.value: field.value for field in node.fields}
    if not values.keys() <= input_type.fields.keys():
        return _unconvertible
    create, convert_fields = input_type.out_type, _build_fields_converter(input_type.fields, values)
    if create is GraphQLInputObjectType.out_type:  # it returns what it gets
        return convert_fields

    def convert(variables: Variables) -> Any:
        converted = convert_fields(variables)
        return converted if converted is Undefined else create(converted)

    return convert


def _unconvertible(_variables: Variables) -> Any:
    """Leave a literal to graphql-core: `Undefined` asks for the slow conversion."""
    return Undefined


class _VariableFinder(Visitor):
    def __init__(self) -> None:
        super().__init__()
        self.found = False

    def enter_variable(self, *_: Any) -> None:
        self.found = True


def _contains_variable(node: ValueNode) -> bool:
    finder = _VariableFinder()
    visit(node, finder)
    return finder.found
