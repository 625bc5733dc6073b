"""Compiled operations: what a document cache stores beside a document and executes."""

from collections.abc import Awaitable, Coroutine, Iterable
from types import CoroutineType
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
    get_operation_ast,
)
from graphql.language import DirectiveNode, Visitor, visit
from strawberry import Schema

from strawberry_compiled.awaitables import is_awaitable
from strawberry_compiled.compiler import PlanCompiler
from strawberry_compiled.execution import (
    UNLIMITED,
    Execution,
    ResultLimit,
    RootFieldMiddleware,
    ValuePath,
)
from strawberry_compiled.plan import Data, FieldPlan, ObjectPlan
from strawberry_compiled.variables import (
    UnsupportedOperationError,
    VariablesConverter,
)

# A client that varies the variables of many directives compiles a plan for each combination.
MAX_PLANS = 16


def compile_operation(
    schema: GraphQLSchema | Schema,
    document: DocumentNode,
    operation_name: str | None = None,
    *,
    hide_suggestions: bool = False,
    max_coercion_errors: int | None = 50,
) -> "CompiledOperation | None":
    """Compile an operation of a document; None if graphql-core must execute it.

    The document must be valid for the schema, and have one operation or one of the name.
    Plans have no introspection, no directives but `@skip` and `@include`, no arguments of
    fragments, and no variables of input types that contain themselves.

    Args:
        schema: a schema of Strawberry or of graphql-core.
        document: the parsed document.
        operation_name: needed for a document with several operations.
        hide_suggestions: leave names of the schema out of errors, as graphql-core's option does.
        max_coercion_errors: the maximum of errors about variables in one result.

    Raises:
        TypeError: the schema is invalid.
    """
    if isinstance(schema, Schema):
        schema = schema._schema
    assert_valid_schema(schema)
    operation = get_operation_ast(document, operation_name)
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
        self._plan: ObjectPlan | None = None  # the only one without such variables

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
        graphql-core must execute the operation with these variables.

        Args:
            root_value: the source of the root fields, such as the event of a subscription.
            context_value: what resolvers find as `info.context`.
            variable_values: the variables as JSON has them, by name.
            middleware: called for each root field, in place of its resolver.
            limit: the size that a result may have.

        Raises:
            Exception: that of the limit, once a result with too many characters is complete.
                A result with too many values has it among its errors.
        """
        inputs = variable_values or {}
        coerced = self._variables.convert(inputs)
        if isinstance(coerced, list):
            return ExecutionResult(None, errors=coerced)
        plan = self._plan or self._find_plan(coerced)
        if plan is None:
            return None
        execution = Execution(
            self._schema,
            self._operation,
            self._fragments,
            self._variables,
            inputs,
            coerced,
            root_value,
            context_value,
            middleware,
            limit,
        )
        if plan.only_field is not None and middleware is None and limit.max_values >= 1:
            execution.values_left -= 1
            return _execute_only_field(plan.only_field, plan.type_name, execution)
        try:
            data = (
                plan.execute_serially(root_value, execution)
                if self._is_serial
                else plan.execute(root_value, execution, None)
            )
        except GraphQLError as error:
            return _failed(error, execution)
        if isinstance(data, dict):
            return _result(data, execution)
        return _await_data(data, execution)

    def _find_plan(self, coerced: dict[str, Any]) -> ObjectPlan | None:
        conditions: tuple[Any, ...] = ()
        if self._condition_names:
            conditions = tuple(coerced.get(name) for name in self._condition_names)
            if not all(isinstance(value, bool) for value in conditions):
                return None
        plan = self._plans.get(conditions)
        if plan is None and conditions not in self._plans:
            if len(self._plans) >= MAX_PLANS:
                self._plans.pop(next(iter(self._plans)))
            plan = self._plans[conditions] = self._compile(conditions)
        if not conditions:
            self._plan = plan
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


def _execute_only_field(
    field: FieldPlan, type_name: str, execution: Execution
) -> ExecutionResult | Awaitable[ExecutionResult]:
    """Execute an operation with one root field, which most are."""
    path = (None, field.key, type_name)
    try:
        try:
            completed = field.resolve(execution.root_value, execution, path)
            if type(completed) is CoroutineType or is_awaitable(completed):
                return _await_only_field(field, path, execution, value=completed)
            completed = field.position.complete(completed, execution, path)
            if type(completed) is CoroutineType:
                return _await_only_field(field, path, execution, completed=completed)
        except Exception as error:
            field.position.handle_error(error, execution, path)
            completed = None
    except GraphQLError as error:
        return _failed(error, execution)
    return _result({field.key: completed}, execution)


async def _await_only_field(
    field: FieldPlan,
    path: ValuePath,
    execution: Execution,
    value: Awaitable[Any] | None = None,
    completed: Any = None,
) -> ExecutionResult:
    """Await the value of the field and complete it, or await its completion."""
    try:
        try:
            if value is not None:
                completed = field.position.complete(await value, execution, path)
            if type(completed) is CoroutineType:
                completed = await completed
        except Exception as error:
            field.position.handle_error(error, execution, path)
            completed = None
    except GraphQLError as error:
        return _failed(error, execution)
    return _result({field.key: completed}, execution)


def _result(data: Data, execution: Execution) -> ExecutionResult:
    if execution.characters_left < 0:
        raise execution.too_large_error()
    return ExecutionResult(data, execution.errors or None)


def _failed(error: GraphQLError, execution: Execution) -> ExecutionResult:
    execution.add_error(error, None)
    return ExecutionResult(None, execution.errors or None)


async def _await_data(data: Coroutine[Any, Any, Data], execution: Execution) -> ExecutionResult:
    try:
        return _result(await data, execution)
    except GraphQLError as error:
        return _failed(error, execution)


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
