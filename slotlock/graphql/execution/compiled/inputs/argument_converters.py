"""Converters of the arguments of a field, made once from the document and the schema.

A converter returns `Undefined` for an invalid value. graphql-core then converts the arguments
again and raises the error that describes what is wrong.
"""

from collections.abc import Callable, Mapping
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
from graphql.utilities.coerce_input_value import coerce_default_value, coerce_input_literal

from slotlock.graphql.execution.compiled.inputs.input_converters import (
    absent_field_value,
    is_required,
)

Variables = Mapping[str, Any]
LiteralConverter = Callable[[Variables], Any]


class ArgumentsConverter:
    """The conversion of all arguments of a field in a document."""

    __slots__ = ("_converters", "_field", "_hide_suggestions", "_node")

    def __init__(self, field: GraphQLField, node: FieldNode, *, hide_suggestions: bool) -> None:
        self._field = field
        self._node = node
        self._hide_suggestions = hide_suggestions
        values = {one.name.value: one.value for one in node.arguments or ()}
        self._converters = [
            (definition.out_name or name, _build_argument_converter(definition, values.get(name)))
            for name, definition in field.args.items()
        ]

    def convert(self, variables: VariableValues) -> dict[str, Any]:
        """Return the arguments. Raises the error of graphql-core for an invalid value."""
        arguments: dict[str, Any] = {}
        for name, convert in self._converters:
            value = convert(variables.coerced)
            if value is Undefined:
                return self._convert_slowly(variables)
            if value is not ABSENT:
                arguments[name] = value
        return arguments

    def _convert_slowly(self, variables: VariableValues) -> dict[str, Any]:
        return get_argument_values(self._field, self._node, variables, None, self._hide_suggestions)


class _Absent:
    """The type of the marker for an argument that is neither given nor has a default."""

    __slots__ = ()


ABSENT = _Absent()


class ConstantConverter:
    """Returns a value that no execution can change."""

    __slots__ = ("_value",)

    def __init__(self, value: Any) -> None:
        self._value = value

    def __call__(self, _variables: Variables) -> Any:
        """Return the value."""
        return self._value


class LeafLiteralConverter:
    """Converts a literal for each execution: values of custom scalars may be mutable."""

    __slots__ = ("_node", "_type")

    def __init__(self, node: ValueNode, input_type: GraphQLInputType) -> None:
        self._node = node
        self._type = input_type

    def __call__(self, _variables: Variables) -> Any:
        """Return the converted literal, or `Undefined`."""
        return coerce_input_literal(self._node, self._type)


class VariableArgumentConverter:
    """Returns the value of a variable, or the argument's default for one without a value."""

    __slots__ = ("_default", "_is_non_null", "_name")

    def __init__(self, name: str, definition: GraphQLArgument | GraphQLInputField) -> None:
        self._name = name
        self._is_non_null = isinstance(definition.type, GraphQLNonNull)
        default = coerce_default_value(definition)
        if default is Undefined and not self._is_non_null:
            default = ABSENT
        self._default = default

    def __call__(self, variables: Variables) -> Any:
        """Return the value, `ABSENT`, or `Undefined`."""
        value = variables.get(self._name, self._default)
        return Undefined if value is None and self._is_non_null else value


class VariableItemConverter:
    """Returns the value of a variable in a list, or null for one without a value."""

    __slots__ = ("_is_non_null", "_name")

    def __init__(self, name: str, input_type: GraphQLInputType) -> None:
        self._name = name
        self._is_non_null = isinstance(input_type, GraphQLNonNull)

    def __call__(self, variables: Variables) -> Any:
        """Return the value, or `Undefined`."""
        value = variables.get(self._name)
        return Undefined if value is None and self._is_non_null else value


class ListLiteralConverter:
    """Converts the items of a list with variables."""

    __slots__ = ("_items",)

    def __init__(self, items: list[LiteralConverter]) -> None:
        self._items = items

    def __call__(self, variables: Variables) -> Any:
        """Return the list, or `Undefined`."""
        items = [convert(variables) for convert in self._items]
        return Undefined if any(item is Undefined for item in items) else items


class ObjectLiteralConverter:
    """Converts the fields of an input object."""

    __slots__ = ("_fields", "_out_type")

    def __init__(
        self, input_type: GraphQLInputObjectType, fields: list[tuple[str, LiteralConverter]]
    ) -> None:
        self._fields = fields
        self._out_type = input_type.out_type

    def __call__(self, variables: Variables) -> Any:
        """Return the object, or `Undefined`."""
        converted: dict[str, Any] = {}
        for name, convert in self._fields:
            value = convert(variables)
            if value is Undefined:
                return Undefined
            if value is not ABSENT:
                converted[name] = value
        return self._out_type(converted)


class UnconvertibleLiteral:
    """Leaves a literal to graphql-core: `Undefined` asks for the slow conversion."""

    __slots__ = ()

    def __call__(self, _variables: Variables) -> Any:
        """Return `Undefined`."""
        return Undefined


def _build_argument_converter(
    definition: GraphQLArgument | GraphQLInputField, node: ValueNode | None
) -> LiteralConverter:
    if node is None:
        if isinstance(definition, GraphQLInputField):
            default = Undefined if is_required(definition) else absent_field_value(definition)
            has_error = is_required(definition)
        else:
            default = coerce_default_value(definition)
            has_error = default is Undefined and isinstance(definition.type, GraphQLNonNull)
        if has_error:
            return UnconvertibleLiteral()
        return ConstantConverter(ABSENT if default is Undefined else default)
    if isinstance(node, VariableNode):
        return VariableArgumentConverter(node.name.value, definition)
    return _build_literal_converter(node, definition.type)


def _build_literal_converter(node: ValueNode, input_type: GraphQLInputType) -> LiteralConverter:
    if isinstance(input_type, GraphQLNonNull):
        if isinstance(node, NullValueNode):
            return UnconvertibleLiteral()
        return _build_literal_converter(node, input_type.of_type)
    if isinstance(node, NullValueNode):
        return ConstantConverter(None)
    if isinstance(input_type, GraphQLList):
        return _build_list_converter(node, input_type)
    if isinstance(input_type, GraphQLInputObjectType):
        return _build_object_converter(node, input_type)
    if isinstance(node, ListValueNode | ObjectValueNode) and contains_variable(node):
        return UnconvertibleLiteral()
    if is_specified_scalar_type(input_type) or isinstance(input_type, GraphQLEnumType):
        return ConstantConverter(coerce_input_literal(node, input_type))
    return LeafLiteralConverter(node, input_type)


def _build_list_converter(node: ValueNode, input_type: GraphQLList[Any]) -> LiteralConverter:
    item_type = input_type.of_type
    if not isinstance(node, ListValueNode):
        return ListLiteralConverter([_build_literal_converter(node, item_type)])
    return ListLiteralConverter(
        [
            VariableItemConverter(item.name.value, item_type)
            if isinstance(item, VariableNode)
            else _build_literal_converter(item, item_type)
            for item in node.values
        ]
    )


def _build_object_converter(
    node: ValueNode, input_type: GraphQLInputObjectType
) -> LiteralConverter:
    if not isinstance(node, ObjectValueNode) or input_type.is_one_of:
        return UnconvertibleLiteral()
    values = {field.name.value: field.value for field in node.fields}
    if not values.keys() <= input_type.fields.keys():
        return UnconvertibleLiteral()
    return ObjectLiteralConverter(
        input_type,
        [
            (field.out_name or name, _build_argument_converter(field, values.get(name)))
            for name, field in input_type.fields.items()
        ],
    )


class _VariableFinder(Visitor):
    def __init__(self) -> None:
        super().__init__()
        self.found = False

    def enter_variable(self, *_: Any) -> None:
        self.found = True


def contains_variable(node: ValueNode) -> bool:
    """Return whether a literal contains a variable."""
    finder = _VariableFinder()
    visit(node, finder)
    return finder.found
