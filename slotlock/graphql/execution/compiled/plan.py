"""The plan of an operation: its fields, executed object by object (spec, 6.2 and 6.3)."""

from collections.abc import Awaitable, Callable, Coroutine
from types import CoroutineType
from typing import Any

from graphql import GraphQLObjectType, default_field_resolver
from graphql.pyutils import gather_with_cancel

from slotlock.graphql.execution.compiled.awaitables import is_awaitable
from slotlock.graphql.execution.compiled.completion import OutputPosition
from slotlock.graphql.execution.compiled.errors import ValuePath
from slotlock.graphql.execution.compiled.execution import Execution, RootFieldMiddleware
from slotlock.graphql.execution.compiled.inputs.argument_converters import ArgumentsConverter
from slotlock.graphql.execution.compiled.resolve_info import FieldInfo
from slotlock.graphql.execution.compiled.strawberry_resolver import StrawberryCall

Data = dict[str, Any]
DataOrCoroutine = Data | Coroutine[Any, Any, Data]


class FieldPlan:
    """A field of an object in the response, resolved by the function that the schema has for it."""

    __slots__ = ("_arguments", "_info", "_resolve", "key", "position", "read")

    def __init__(
        self,
        key: str,
        info: FieldInfo,
        arguments: ArgumentsConverter | None,
        position: OutputPosition,
    ) -> None:
        self.key = key
        self.position = position
        # Reads the value of a plain attribute without the resolver; None for other fields.
        self.read: Callable[[Any], Any] | None = None
        self._info = info
        self._arguments = arguments
        self._resolve: Callable[..., Any] = info.definition.resolve or default_field_resolver

    def resolve(self, source: Any, execution: Execution, path: ValuePath) -> Any:
        """Return the value of the field, before its completion."""
        info = self._info.build(execution, path)
        return self._resolve(source, info, **self._convert_arguments(execution))

    def resolve_with(
        self,
        middleware: RootFieldMiddleware,
        source: Any,
        execution: Execution,
        path: ValuePath,
    ) -> Any:
        """Return the value of a root field from a middleware, which gets the resolver."""
        info = self._info.build(execution, path)
        return middleware(self._resolve, source, info, **self._convert_arguments(execution))

    def _convert_arguments(self, execution: Execution) -> dict[str, Any]:
        return {} if self._arguments is None else self._arguments.convert(execution.variables)


class AttributeFieldPlan(FieldPlan):
    """A field whose resolver only reads an attribute of the source."""

    __slots__ = ("_read",)

    def __init__(
        self, key: str, info: FieldInfo, position: OutputPosition, read: Callable[[Any], Any]
    ) -> None:
        super().__init__(key, info, None, position)
        self.read = self._read = read

    def resolve(self, source: Any, _execution: Execution, _path: ValuePath) -> Any:
        """Return the value of the attribute."""
        return self._read(source)


class StrawberryFieldPlan(FieldPlan):
    """A field whose Strawberry resolver is called without its wrapper."""

    __slots__ = ("_call",)

    def __init__(
        self,
        key: str,
        info: FieldInfo,
        arguments: ArgumentsConverter | None,
        position: OutputPosition,
        call: StrawberryCall,
    ) -> None:
        super().__init__(key, info, arguments, position)
        self._call = call

    def resolve(self, source: Any, execution: Execution, path: ValuePath) -> Any:
        """Return the value of the field, before its completion."""
        info = self._info.build(execution, path) if self._call.needs_info else None
        return self._call(source, info, self._convert_arguments(execution))


class ObjectPlan:
    """The selected fields of one object type at one place of a document."""

    __slots__ = ("_fields", "_size", "_type_name")

    def __init__(
        self, object_type: GraphQLObjectType, fields: list[tuple[FieldPlan, type | None]]
    ) -> None:
        self._type_name = object_type.name
        # A value of exactly the type is its own result; None if there is no such type.
        self._fields = [(field.key, field.read, unchanged, field) for field, unchanged in fields]
        self._size = len(fields)

    def execute(self, source: Any, execution: Execution, path: ValuePath | None) -> DataOrCoroutine:
        """Return the fields of an object, or a coroutine that awaits some of them."""
        execution.count_values(self._size)
        results: Data = {}
        pending: list[str] = []
        try:
            for key, read, unchanged, field in self._fields:
                if read is not None and unchanged is not None:
                    try:
                        value = read(source)
                    except Exception as error:
                        field.position.handle_error(error, execution, (path, key, self._type_name))
                        results[key] = None
                        continue
                    if type(value) is unchanged:
                        results[key] = value
                        continue
                completed = self._execute_field(field, source, execution, path)
                if type(completed) is CoroutineType:
                    pending.append(key)
                results[key] = completed
        except Exception:
            if pending:
                execution.settle_in_background([results[key] for key in pending])
            raise
        return await_fields(results, pending) if pending else results

    def execute_serially(self, source: Any, execution: Execution) -> DataOrCoroutine:
        """Return the fields of a mutation; each begins after the one before it is complete."""
        results: Data = {}
        for index, (key, _, _, field) in enumerate(self._fields):
            completed = self._execute_field(field, source, execution, None)
            if type(completed) is CoroutineType:
                return self._continue_serially(index, completed, results, source, execution)
            results[key] = completed
        return results

    async def _continue_serially(
        self,
        index: int,
        completed: Awaitable[Any],
        results: Data,
        source: Any,
        execution: Execution,
    ) -> Data:
        results[self._fields[index][0]] = await completed
        for key, _, _, field in self._fields[index + 1 :]:
            completed = self._execute_field(field, source, execution, None)
            results[key] = await completed if type(completed) is CoroutineType else completed
        return results

    def _execute_field(
        self, field: FieldPlan, source: Any, execution: Execution, parent_path: ValuePath | None
    ) -> Any:
        position = field.position
        path = (parent_path, field.key, self._type_name)
        try:
            if parent_path is None and execution.middleware is not None:
                value = field.resolve_with(execution.middleware, source, execution, path)
            else:
                value = field.resolve(source, execution, path)
            if is_awaitable(value):
                return position.complete_later(value, execution, path)
            completed = position.complete(value, execution, path)
            if type(completed) is CoroutineType:
                return position.finish_later(completed, execution, path)
        except Exception as error:
            position.handle_error(error, execution, path)
            return None
        return completed


async def await_fields(results: Data, pending: list[str]) -> Data:
    """Await the unfinished fields together and put them in their places."""
    if len(pending) == 1:
        results[pending[0]] = await results[pending[0]]
        return results
    finished = await gather_with_cancel(*(results[key] for key in pending))
    results.update(zip(pending, finished, strict=True))
    return results
