"""Compiled operations: what a document cache stores beside a document and executes."""

from collections.abc import Awaitable, Coroutine, Iterable
from typing import Any

from graphql import (
    DocumentNode,
    ExecutionResult,
    FragmentDefinitionNode,
    GraphQLError,
    GraphQLObjectType,
    GraphQLSchema,
    OperationDefinitionNode,
    OperationType,
    VariableNode,
    assert_valid_schema,
)
from graphql.execution.values import VariableValues
from graphql.language import DirectiveNode, Visitor, visit

from slotlock.graphql.execution.compiled.compiler import PlanCompiler
from slotlock.graphql.execution.compiled.execution import (
    UNLIMITED,
    Execution,
    ResultLimit,
    RootFieldMiddleware,
)
from slotlock.graphql.execution.compiled.inputs.variables import (
    UnsupportedOperationError,
    VariablesConverter,
)
from slotlock.graphql.execution.compiled.plan import Data, ObjectPlan

# A client that varies the variables of many directives compiles a plan for each combination.
MAX_PLANS = 16


def compile_operation(
    schema: GraphQLSchema,
    document: DocumentNode,
    operation_name: str | None = None,
    *,
    hide_suggestions: bool = False,
    max_coercion_errors: int | None = 50,
) -> "CompiledOperation | None":
    """Compile an operation of a valid document; None if plans cannot execute it.

    Plans have no introspection, no directives but `@skip` and `@include`, no arguments of
    fragments, and no variables of input types that contain themselves.
    """
    assert_valid_schema(schema)
    operation = _find_operation(document, operation_name)
    if operation is None:
        return None
    try:
        compiled = CompiledOperation(
            schema,
            operation,
            document,
            hide_suggestions=hide_suggestions,
            max_coercion_errors=max_coercion_errors,
        )
    except (UnsupportedOperationError, GraphQLError, TypeError, RecursionError):
        return None
    return compiled


class CompiledOperation:
    """An operation with a plan for each combination of its `@skip` and `@include` variables."""

    def __init__(
        self,
        schema: GraphQLSchema,
        operation: OperationDefinitionNode,
        document: DocumentNode,
        *,
        hide_suggestions: bool,
        max_coercion_errors: int | None,
    ) -> None:
        root_type = schema.get_root_type(operation.operation)
        if root_type is None:
            raise UnsupportedOperationError(f"the schema has no {operation.operation.value}")
        self._schema = schema
        self._root_type: GraphQLObjectType = root_type
        self._operation = operation
        self._fragments = {
            node.name.value: node
            for node in document.definitions
            if isinstance(node, FragmentDefinitionNode)
        }
        self._hide_suggestions = hide_suggestions
        self._variables = VariablesConverter(
            schema, operation, hide_suggestions=hide_suggestions, max_errors=max_coercion_errors
        )
        self._condition_names = _find_condition_names(operation, self._fragments.values())
        self._is_serial = operation.operation is OperationType.MUTATION
        self._plans: dict[tuple[bool, ...], ObjectPlan | None] = {}

    def execute(
        self,
        *,
        root_value: object = None,
        context_value: object = None,
        variable_values: dict[str, Any] | None = None,
        middleware: RootFieldMiddleware | None = None,
        limit: ResultLimit = UNLIMITED,
    ) -> ExecutionResult | Awaitable[ExecutionResult] | None:
        """Execute the operation as graphql-core's `execute` does.

        Returns the result, or an awaitable of it if a resolver was asynchronous, or None if
        graphql-core must execute the operation with these variables. A result with too many
        characters raises the error of the limit once it is complete.
        """
        variables = self._variables.convert(variable_values or {})
        if isinstance(variables, list):
            return ExecutionResult(None, errors=variables)
        plan = self._find_plan(variables)
        if plan is None:
            return None
        execution = Execution(
            self._schema,
            self._operation,
            self._fragments,
            variables,
            root_value,
            context_value,
            middleware,
            limit,
        )
        try:
            data = (
                plan.execute_serially(root_value, execution)
                if self._is_serial
                else plan.execute(root_value, execution, None)
            )
        except GraphQLError as error:
            execution.field_errors.add(error, None)
            return ExecutionResult(None, execution.errors)
        if isinstance(data, dict):
            if execution.characters_left < 0:
                raise execution.too_large_error()
            return ExecutionResult(data, execution.errors)
        return _await_data(data, execution)

    def _find_plan(self, variables: VariableValues) -> ObjectPlan | None:
        conditions: tuple[Any, ...] = ()
        if self._condition_names:
            conditions = tuple(variables.coerced.get(name) for name in self._condition_names)
            if not all(isinstance(value, bool) for value in conditions):
                return None
        plan = self._plans.get(conditions)
        if plan is None and conditions not in self._plans:
            if len(self._plans) >= MAX_PLANS:
                self._plans.pop(next(iter(self._plans)))
            plan = self._plans[conditions] = self._compile(conditions)
        return plan

    def _compile(self, conditions: tuple[bool, ...]) -> ObjectPlan | None:
        compiler = PlanCompiler(
            self._schema,
            self._operation,
            self._fragments,
            dict(zip(self._condition_names, conditions, strict=True)),
            hide_suggestions=self._hide_suggestions,
        )
        try:
            return compiler.compile_root(self._root_type)
        except (GraphQLError, TypeError, RecursionError):
            return None


async def _await_data(data: Coroutine[Any, Any, Data], execution: Execution) -> ExecutionResult:
    try:
        result = ExecutionResult(await data, execution.errors)
    except GraphQLError as error:
        execution.field_errors.add(error, None)
        return ExecutionResult(None, execution.errors)
    if execution.characters_left < 0:
        raise execution.too_large_error()
    return result


def _find_operation(document: DocumentNode, name: str | None) -> OperationDefinitionNode | None:
    operations = [
        node
        for node in document.definitions
        if isinstance(node, OperationDefinitionNode)
        and (name is None or (node.name is not None and node.name.value == name))
    ]
    return operations[0] if len(operations) == 1 else None


class _DirectiveVisitor(Visitor):
    """Collects the variables of `@skip` and `@include`, and rejects all other directives."""

    def __init__(self) -> None:
        super().__init__()
        self.names: dict[str, None] = {}

    def enter_directive(self, node: DirectiveNode, *_: Any) -> None:
        if node.name.value not in ("skip", "include"):
            raise UnsupportedOperationError(f"the directive @{node.name.value}")
        for argument in node.arguments or ():
            if isinstance(argument.value, VariableNode):
                self.names[argument.value.name.value] = None


def _find_condition_names(
    operation: OperationDefinitionNode, fragments: Iterable[FragmentDefinitionNode]
) -> tuple[str, ...]:
    visitor = _DirectiveVisitor()
    visit(operation, visitor)
    for fragment in fragments:
        if fragment.variable_definitions:
            raise UnsupportedOperationError("arguments of fragments")
        visit(fragment, visitor)
    # Fragments that only other operations use may name variables of those.
    defined = {one.variable.name.value for one in operation.variable_definitions or ()}
    return tuple(name for name in visitor.names if name in defined)
