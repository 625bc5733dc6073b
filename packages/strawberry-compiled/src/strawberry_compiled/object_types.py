"""The completion of objects: their runtime type, its predicate, and their fields (spec, 6.4.3)."""

from collections.abc import Awaitable, Callable
from types import CoroutineType
from typing import Any

from graphql import (
    FieldNode,
    GraphQLAbstractType,
    GraphQLError,
    GraphQLObjectType,
    GraphQLSchema,
    default_type_resolver,
)
from graphql.pyutils import inspect
from strawberry.types.cast import TYPE_CAST_ATTRIBUTE

from strawberry_compiled import strawberry_fields
from strawberry_compiled.awaitables import is_awaitable, is_never_awaitable
from strawberry_compiled.execution import Execution, FieldInfo, ValuePath
from strawberry_compiled.plan import ObjectPlan

CompileFields = Callable[[GraphQLObjectType], ObjectPlan]


class ObjectCompleter:
    """Completes the objects of one type at one place of a document."""

    __slots__ = ("_compile", "_info", "_is_type_of", "_plan", "_type", "plans")

    def __init__(
        self, object_type: GraphQLObjectType, info: FieldInfo, compile_fields: CompileFields
    ) -> None:
        self._type = object_type
        self._info = info
        self._compile = compile_fields
        # Compiled at the first object: most places never get one of some of their types.
        self._plan: ObjectPlan | None = None
        self._is_type_of: Callable[..., Any] | None = object_type.is_type_of
        # The plan for each Python type that the predicate accepts, if it depends on nothing else.
        self.plans: dict[type, ObjectPlan] = {}

    def __call__(self, value: Any, execution: Execution, path: ValuePath) -> Any:
        """Return the fields, or a coroutine of them."""
        known_plan = self.plans.get(type(value))
        if known_plan is not None and getattr(value, TYPE_CAST_ATTRIBUTE, None) is None:
            return known_plan.execute(value, execution, path)
        if self._is_type_of is None:
            self._remember(value)
        else:
            is_type_of = self._is_type_of(value, self._info.build(execution, path))
            if is_awaitable(is_type_of):
                return self._complete_later(is_type_of, value, execution, path)
            if not is_type_of:
                raise self._wrong_type_error(value)
            if strawberry_fields.is_decided_by_type(self._is_type_of, value):
                self._remember(value)
        return self._compiled_plan().execute(value, execution, path)

    def _remember(self, value: object) -> None:
        # Nobody has asked this about the values that resolvers return when they are awaited.
        if not is_awaitable(value) and is_never_awaitable(type(value)):
            self.plans[type(value)] = self._compiled_plan()

    def _compiled_plan(self) -> ObjectPlan:
        if self._plan is None:
            self._plan = self._compile(self._type)
        return self._plan

    async def _complete_later(
        self, is_type_of: Awaitable[bool], value: Any, execution: Execution, path: ValuePath
    ) -> Any:
        if not await is_type_of:
            raise self._wrong_type_error(value)
        completed = self._compiled_plan().execute(value, execution, path)
        return await completed if type(completed) is CoroutineType else completed

    def _wrong_type_error(self, value: Any) -> GraphQLError:
        return GraphQLError(
            f"Expected value of type '{self._type}' but got: {inspect(value)}.", self._info.nodes
        )


class AbstractCompleter:
    """Completes the objects of an interface or a union at one place of a document."""

    __slots__ = (
        "_by_name",
        "_by_python_type",
        "_compile",
        "_info",
        "_resolve_type",
        "_schema",
        "_type",
    )

    def __init__(
        self,
        schema: GraphQLSchema,
        abstract_type: GraphQLAbstractType,
        info: FieldInfo,
        compile_fields: CompileFields,
    ) -> None:
        self._schema = schema
        self._type = abstract_type
        self._info = info
        self._compile = compile_fields
        self._resolve_type: Callable[..., Any] = abstract_type.resolve_type or default_type_resolver
        self._by_name: dict[str, ObjectCompleter] = {}
        self._by_python_type: dict[type, ObjectCompleter] = {}

    def __call__(self, value: Any, execution: Execution, path: ValuePath) -> Any:
        """Return the fields of the object's runtime type, or a coroutine of them."""
        known = self._by_python_type.get(type(value))
        if known is not None and getattr(value, TYPE_CAST_ATTRIBUTE, None) is None:
            plan = known.plans.get(type(value))
            return (plan.execute if plan is not None else known)(value, execution, path)
        name = self._resolve_type(value, self._info.build(execution, path), self._type)
        if is_awaitable(name):
            return self._complete_later(name, value, execution, path)
        completer = self._completer_of(name, value)
        if strawberry_fields.is_decided_by_type(self._resolve_type, value):
            self._by_python_type[type(value)] = completer
        return completer(value, execution, path)

    async def _complete_later(
        self, name: Awaitable[Any], value: Any, execution: Execution, path: ValuePath
    ) -> Any:
        completed = self._completer_of(await name, value)(value, execution, path)
        return await completed if type(completed) is CoroutineType else completed

    def _completer_of(self, name: Any, value: Any) -> ObjectCompleter:
        if isinstance(name, str) and name in self._by_name:
            return self._by_name[name]
        object_type = self._valid_object_type(name, value)
        completer = ObjectCompleter(object_type, self._info, self._compile)
        self._by_name[name] = completer
        return completer

    def _valid_object_type(self, name: Any, value: Any) -> GraphQLObjectType:
        """Return the type of this name. Raises graphql-core's error if it is not possible."""
        field = f"{self._info.parent_type}.{self._info.field_name}"
        if name is None:
            raise self._error(
                f"Abstract type '{self._type}' must resolve to an Object type at runtime"
                f" for field '{field}'. Either the '{self._type}' type should provide"
                " a 'resolve_type' function or each possible type should provide"
                " an 'is_type_of' function."
            )
        if not isinstance(name, str):
            raise self._error(
                f"Abstract type '{self._type}' must resolve to an Object type at runtime"
                f" for field '{field}' with value {inspect(value)}, received '{inspect(name)}',"
                " which is not a valid Object type name."
            )
        runtime_type = self._schema.get_type(name)
        if runtime_type is None:
            raise self._error(
                f"Abstract type '{self._type}' was resolved to a type '{name}' that does not"
                " exist inside the schema."
            )
        if not isinstance(runtime_type, GraphQLObjectType):
            raise self._error(
                f"Abstract type '{self._type}' was resolved to a non-object type '{name}'."
            )
        if not self._schema.is_sub_type(self._type, runtime_type):
            raise self._error(
                f"Runtime Object type '{runtime_type}' is not a possible type for '{self._type}'."
            )
        return runtime_type

    def _error(self, message: str) -> GraphQLError:
        nodes: list[FieldNode] = self._info.nodes
        return GraphQLError(message, nodes)
