"""The plan of an operation: its fields, executed object by object (spec, 6.2 and 6.3)."""

from collections.abc import Awaitable, Callable, Coroutine, Sequence
from types import CoroutineType, NoneType
from typing import Any

from graphql import GraphQLObjectType, Undefined, default_field_resolver
from graphql.pyutils import gather_with_cancel

from strawberry_compiled.arguments import ArgumentsConverter
from strawberry_compiled.awaitables import is_awaitable, is_never_awaitable, plain_types
from strawberry_compiled.completion import (
    PLAIN_RESULTS,
    LeafCompleter,
    OutputPosition,
)
from strawberry_compiled.execution import (
    Execution,
    FieldInfo,
    RootFieldMiddleware,
    ValuePath,
    settle_in_background,
)
from strawberry_compiled.strawberry_fields import StrawberryCall

# An attribute of the function that serializes a scalar: another one, for lists of values.
SERIALIZE_ALL = "serialize_all"
PLAIN_RESULTS_AND_NULL = PLAIN_RESULTS | {NoneType}

Data = dict[str, Any]
DataOrCoroutine = Data | Coroutine[Any, Any, Data]


class FieldPlan:
    """A field of an object in the response, resolved by the function that the schema has for it."""

    __slots__ = ("_arguments", "_info", "_resolve", "key", "position")

    def __init__(
        self,
        key: str,
        info: FieldInfo,
        arguments: ArgumentsConverter | None,
        position: OutputPosition,
    ) -> None:
        self.key = key
        self.position = position
        self._info = info
        self._arguments = arguments
        self._resolve: Callable[..., Any] = info.definition.resolve or default_field_resolver

    def resolve(self, source: Any, execution: Execution, path: ValuePath) -> Any:
        """Return the value of the field, before its completion."""
        info = self._info.build(execution, path)
        return self._resolve(source, info, **self._convert_arguments(execution))

    def _convert_arguments(self, execution: Execution) -> dict[str, Any]:
        """Return the arguments. Raises the error of graphql-core for an invalid value."""
        if self._arguments is None or self._arguments.convert is None:
            return {}
        arguments = self._arguments.convert(execution.coerced)
        if arguments is Undefined:
            arguments = self._arguments.convert_slowly(execution.variables)
        return arguments  # type: ignore[no-any-return]

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


class AttributeFieldPlan(FieldPlan):
    """A field whose resolver only reads an attribute of the source."""

    __slots__ = ("read",)

    def __init__(
        self, key: str, info: FieldInfo, position: OutputPosition, read: Callable[[Any], Any]
    ) -> None:
        super().__init__(key, info, None, position)
        self.read = read

    def resolve(self, source: Any, _execution: Execution, _path: ValuePath) -> Any:
        """Return the value of the attribute."""
        return self.read(source)


class LeafFieldPlan(AttributeFieldPlan):
    """An attribute that is a scalar or an enum.

    Most values of a field have one Python type, and the serializer of the leaf type is all that
    they need. `serializers` remembers the types of such values.
    """

    __slots__ = (
        "_is_nullable",
        "_serialize",
        "_serialize_all",
        "_was_awaitable",
        "serializers",
        "unchanged_type",
    )

    def __init__(
        self,
        key: str,
        info: FieldInfo,
        position: OutputPosition,
        read: Callable[[Any], Any],
        leaf: LeafCompleter,
    ) -> None:
        super().__init__(key, info, position, read)
        self._is_nullable = position.is_nullable
        self._serialize = leaf.serialize
        # Serializes a list of values as `serialize` does each: `SERIALIZE_ALL` of its function.
        self._serialize_all = getattr(leaf.serialize, SERIALIZE_ALL, None)
        self._was_awaitable = False
        self.serializers: dict[type, Callable[[Any], Any]] = {}
        # A value of exactly this type is its own result; None if there is no such type.
        self.unchanged_type = leaf.unchanged_type

    def complete(self, value: Any, execution: Execution, path: ValuePath) -> Any:
        """Complete the value of the attribute. The result may be a coroutine."""
        if value is None and self._is_nullable:
            return None
        if is_awaitable(value):
            self._was_awaitable = True
            return self.position.complete_later(value, execution, path)
        completed = self.position.complete(value, execution, path)
        if type(completed) is CoroutineType:
            return self.position.finish_later(completed, execution, path)
        if type(completed) in PLAIN_RESULTS and is_never_awaitable(type(value)):
            self.serializers[type(value)] = self._serialize
        return completed

    def complete_together(self, sources: Sequence[Any]) -> list[Any] | None:
        """Complete the attribute of several objects; None if `complete` has to decide about one.

        The attributes are then read again. That must not happen to an attribute that creates
        something to await, because nobody would await the first one.
        """
        if self._was_awaitable:
            return None
        try:
            values = list(map(self.read, sources))
            types = set(map(type, values))
            types.discard(self.unchanged_type)
            if self._is_nullable:
                types.discard(NoneType)
            if not types:
                return values
            if not types <= self.serializers.keys():
                return None
            serialize, serialize_all = self._serialize, self._serialize_all
            if serialize_all is not None and NoneType not in map(type, values):
                results = serialize_all(values)
            else:
                results = [None if value is None else serialize(value) for value in values]
        except Exception:  # `complete` records it for the object that it belongs to
            return None
        are_complete = PLAIN_RESULTS_AND_NULL.issuperset(map(type, results))
        return results if are_complete and results.count(None) == values.count(None) else None


class StrawberryFieldPlan(FieldPlan):
    """A field whose Strawberry resolver is called without its wrapper."""

    __slots__ = ("_call", "_convert")

    def __init__(
        self,
        key: str,
        info: FieldInfo,
        arguments: ArgumentsConverter,
        position: OutputPosition,
        call: StrawberryCall,
    ) -> None:
        super().__init__(key, info, arguments, position)
        self._call = call
        self._convert = arguments.convert

    def resolve(self, source: Any, execution: Execution, path: ValuePath) -> Any:
        """Return the value of the field, before its completion."""
        if self._convert is None:
            return self._call(source, {}, execution, self._info, path)
        arguments = self._convert(execution.coerced)
        if arguments is Undefined:
            arguments = self._convert_arguments(execution)
        return self._call(source, arguments, execution, self._info, path)


class ObjectPlan:
    """The selected fields of one object type at one place of a document."""

    __slots__ = ("_fields", "_leaves", "_size", "only_field", "type_name")

    def __init__(self, object_type: GraphQLObjectType, fields: list[FieldPlan]) -> None:
        self.type_name = object_type.name
        self.only_field = fields[0] if len(fields) == 1 else None
        self._fields = [
            (field.key, field, field if isinstance(field, LeafFieldPlan) else None)
            for field in fields
        ]
        leaves = [field for field in fields if isinstance(field, LeafFieldPlan)]
        self._leaves = leaves if len(leaves) == len(fields) else None
        self._size = len(fields)

    def execute_together(self, sources: Sequence[Any], execution: Execution) -> list[Data] | None:
        """Return the fields of objects of one Python type; None if `execute` has to decide.

        Attributes are read and serialized field by field, which takes two thirds of the time.
        Nulls that are not allowed, errors and values to await take `execute` for each object.
        """
        values_count = self._size * len(sources)
        if self._leaves is None or values_count > execution.values_left:
            return None
        results: list[Data] = [{} for _ in sources]
        for leaf in self._leaves:
            values = leaf.complete_together(sources)
            if values is None:
                return None
            key = leaf.key
            for result, value in zip(results, values, strict=True):
                result[key] = value
        execution.values_left -= values_count
        return results

    def execute(self, source: Any, execution: Execution, path: ValuePath | None) -> DataOrCoroutine:
        """Return the fields of an object, or a coroutine that awaits some of them."""
        execution.values_left -= self._size
        if execution.values_left < 0:
            raise execution.too_large_error()
        has_middleware = path is None and execution.middleware is not None
        results: Data = {}
        pending: list[str] = []
        try:
            for key, field, leaf in self._fields:
                if leaf is None or has_middleware:
                    value = self._execute_field(field, source, execution, path)
                else:
                    try:
                        value = leaf.read(source)
                        value_type = type(value)
                        if value_type is leaf.unchanged_type:
                            results[key] = value
                            continue
                        serialize = leaf.serializers.get(value_type)
                        if serialize is None or (
                            type(result := serialize(value)) not in PLAIN_RESULTS
                        ):
                            result = leaf.complete(value, execution, (path, key, self.type_name))
                        value = result
                    except Exception as error:
                        field.position.handle_error(error, execution, (path, key, self.type_name))
                        value = None
                if type(value) is CoroutineType:
                    pending.append(key)
                results[key] = value
        except Exception:
            if pending:
                settle_in_background([results[key] for key in pending])
            raise
        return await_fields(results, pending) if pending else results

    def execute_serially(self, source: Any, execution: Execution) -> DataOrCoroutine:
        """Return the fields of a mutation; each begins after the one before it is complete."""
        results: Data = {}
        for index, (key, field, _) in enumerate(self._fields):
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
        for key, field, _ in self._fields[index + 1 :]:
            completed = self._execute_field(field, source, execution, None)
            results[key] = await completed if type(completed) is CoroutineType else completed
        return results

    def _execute_field(
        self, field: FieldPlan, source: Any, execution: Execution, parent_path: ValuePath | None
    ) -> Any:
        position = field.position
        path = (parent_path, field.key, self.type_name)
        try:
            if parent_path is None and execution.middleware is not None:
                value = field.resolve_with(execution.middleware, source, execution, path)
            else:
                value = field.resolve(source, execution, path)
            if value is None and position.is_nullable:
                return None
            if type(value) not in plain_types and is_awaitable(value):
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
