"""The variables of an operation: their converters, made once from their definitions."""

from typing import Any

from graphql import (
    GraphQLError,
    GraphQLNonNull,
    GraphQLSchema,
    OperationDefinitionNode,
    Undefined,
    VariableDefinitionNode,
)
from graphql.execution.get_variable_signature import (
    GraphQLVariableSignature,
    get_variable_signature,
)
from graphql.execution.values import (
    VariableValues,
    VariableValueSource,
    get_variable_values,
)
from graphql.utilities.coerce_input_value import coerce_input_literal

from slotlock.graphql.execution.compiled.inputs.input_converters import (
    InputConverter,
    build_input_converter,
)


class UnsupportedOperationError(Exception):
    """The operation uses a feature that plans do not have."""


class VariableConverter:
    """The conversion of one variable."""

    __slots__ = ("_convert", "_definition", "_signature", "_without_value", "name")

    def __init__(self, schema: GraphQLSchema, definition: VariableDefinitionNode) -> None:
        signature = get_variable_signature(schema, definition)
        if isinstance(signature, GraphQLError):
            raise UnsupportedOperationError(signature.message)
        convert = build_input_converter(signature.type)
        if convert is None:
            raise UnsupportedOperationError(f"{signature.type} can contain itself")
        self.name = signature.name
        self._definition = definition
        self._signature: GraphQLVariableSignature = signature
        self._convert: InputConverter = convert
        self._without_value = VariableValueSource(signature)

    def add_value(
        self,
        inputs: dict[str, Any],
        sources: dict[str, VariableValueSource],
        coerced: dict[str, Any],
    ) -> bool:
        """Add the value of the variable; return False if it is invalid."""
        name = self.name
        value = inputs.get(name, Undefined)
        if value is Undefined:
            return self._add_default(sources, coerced)
        sources[name] = VariableValueSource(self._signature, value)
        converted = self._convert(value)
        if converted is Undefined:
            return False
        coerced[name] = converted
        return True

    def _add_default(
        self, sources: dict[str, VariableValueSource], coerced: dict[str, Any]
    ) -> bool:
        sources[self.name] = self._without_value
        default = self._definition.default_value
        if default is None:
            return not isinstance(self._signature.type, GraphQLNonNull)
        # Converted for each execution, because a resolver may change a list or an object.
        converted = coerce_input_literal(default, self._signature.type)
        if converted is Undefined:
            return False
        coerced[self.name] = converted
        return True


class VariablesConverter:
    """The conversion of all variables of an operation."""

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
        self._converters = [VariableConverter(schema, one) for one in self._definitions]
        self._hide_suggestions = hide_suggestions
        self._max_errors = max_errors

    def convert(self, inputs: dict[str, Any]) -> VariableValues | list[GraphQLError]:
        """Return the values of the variables, or the errors of graphql-core."""
        sources: dict[str, VariableValueSource] = {}
        coerced: dict[str, Any] = {}
        is_valid = True
        try:
            for converter in self._converters:
                if not converter.add_value(inputs, sources, coerced):
                    is_valid = False
                    break
        except Exception:
            is_valid = False
        if is_valid:
            return VariableValues(sources, coerced)
        return get_variable_values(
            self._schema,
            self._definitions,
            inputs,
            max_errors=self._max_errors,
            hide_suggestions=self._hide_suggestions,
        )
