"""Subscriptions of many clients to the same data: each response is executed and encoded once.

The availability of a slot is the same for every viewer, and so is a published campaign. Subscribers
with equal operations therefore share the response to each state.
"""

from collections import OrderedDict
from collections.abc import Callable
from typing import Any
from weakref import WeakValueDictionary

import orjson
from graphql import FieldNode, Node, OperationDefinitionNode, VariableNode, Visitor, visit

from slotlock.graphql.context import Context
from slotlock.graphql.execution.document_cache import Operation
from slotlock.graphql.execution.operation_executor import (
    GraphQLResponse,
    Variables,
    execute_shared_event,
)

# As many as a campaign has slots.
MAX_RESPONSES = 1000

ToEvent = Callable[[Any], object]


class SharedOperation:
    """A subscription to shared events, with the responses that its subscribers read next.

    A crowd that subscribes to a campaign reads the states of all its slots. Of the responses, the
    latest are stored: the memory does not grow with the states.
    """

    def __init__(
        self,
        operation: Operation,
        variables: Variables | None,
        context: Context,
        to_event: ToEvent,
    ) -> None:
        self._operation = operation
        self._variables = variables
        self._context = context
        self._to_event = to_event
        self._state: object = None
        self._response = GraphQLResponse({})
        self._responses: OrderedDict[object, GraphQLResponse] = OrderedDict()

    def respond(self, state: object) -> GraphQLResponse:
        """Return the response to a state."""
        if state is not self._state:
            # Subscribers who just subscribed may have read an equal state of their own.
            response = self._responses.get(state)
            if response is None:
                response = self._responses[state] = self._execute(state)
                if len(self._responses) > MAX_RESPONSES:
                    self._responses.popitem(last=False)
            self._state, self._response = state, response
        return self._response

    def _execute(self, state: object) -> GraphQLResponse:
        event, context = self._to_event(state), self._context.fork()
        return execute_shared_event(self._operation, self._variables, context, event)


class SharedOperations:
    """The subscriptions to shared events in this process that have subscribers."""

    def __init__(self) -> None:
        self._operations = WeakValueDictionary[tuple[Operation, bytes], SharedOperation]()

    def find(
        self,
        operation: Operation,
        variables: Variables | None,
        context: Context,
        to_event: ToEvent,
    ) -> SharedOperation:
        """Return what the subscribers with this operation and these variables share."""
        key = operation, _encode_used_variables(operation, variables or {})
        shared = self._operations.get(key)
        if shared is None:
            # Without a caller, no field of the response can depend on one.
            shared = SharedOperation(operation, variables, context.without_caller(), to_event)
            self._operations[key] = shared
        return shared


class _VariableCollector(Visitor):
    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()

    def enter_variable(self, node: VariableNode, *_: object) -> None:
        self.names.add(node.name.value)


def _encode_used_variables(operation: Operation, variables: dict[str, Any]) -> bytes:
    """Encode the variables that a response depends on.

    The arguments of the subscription select its events; the response to an event is the same.
    """
    collector = _VariableCollector()
    for node in _nodes_of_response(operation):
        visit(node, collector)
    used = {name: value for name, value in variables.items() if name in collector.names}
    return orjson.dumps(used, option=orjson.OPT_SORT_KEYS)


def _nodes_of_response(operation: Operation) -> list[Node]:
    """Return the parts of a document without the arguments of the subscription."""
    nodes: list[Node] = []
    for definition in operation.document.definitions:
        if not isinstance(definition, OperationDefinitionNode):
            nodes.append(definition)
            continue
        for selection in definition.selection_set.selections:
            if isinstance(selection, FieldNode):
                nodes += selection.directives or ()
                nodes += [selection.selection_set] if selection.selection_set else []
            else:
                nodes.append(selection)
    return nodes
