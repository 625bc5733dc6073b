"""Errors about input values: which field each concerns, and a message without the value.

graphql-core describes an invalid value differently in a variable, in a literal and in a field's
argument. Clients get one form, which resembles a problem in `InvalidInput.fields`.
"""

import re
from collections.abc import Callable
from typing import Any, NamedTuple

from graphql import (
    ArgumentNode,
    DocumentNode,
    FragmentDefinitionNode,
    GraphQLError,
    ListValueNode,
    Node,
    ObjectFieldNode,
    OperationDefinitionNode,
    ValueNode,
    VariableNode,
)

from slotlock.graphql.core.errors import ErrorCode, located_error_body, original_error

InputPath = tuple[str | int, ...]

_FOUND_VALUE = re.compile(r"(?:, found|(\?) Found): .*", re.DOTALL)
_REJECTED_VALUE = re.compile(r"( cannot represent (?:a )?[a-z0-9 -]*value): .*", re.DOTALL)
_FOUND_TOKEN = re.compile(r"((?:found|Unexpected) [A-Z]\w+) ['\"].*['\"]\.\Z", re.DOTALL)
_INVALID_VALUE = re.compile(
    r"(?:Variable '\$\w+'|Argument '\w+') has invalid (?:default )?value"
    r"(?: at (?P<path>(?:\.\w+|\[\d+\])+))?: "
)
_PATH_KEY = re.compile(r"\.(\w+)|\[(\d+)\]")
_FIELD_NAME = re.compile(
    r"Expected value of type '\w+' (?:to include required|not to include unknown) field '(\w+)'"
)
_MISSING_ARGUMENT = re.compile(r"Argument '(?:[\w.@]+\()?(\w+)(?::\))?' of (?:required )?type ")


class InputError(NamedTuple):
    """What a client learns of an invalid value; `field` is spelled as in `InvalidInput.fields`."""

    message: str
    field: str | None


def is_input_error(error: GraphQLError) -> bool:
    """Return whether an error before or in the execution describes what the client sent.

    The executor raises errors without an original, and scalars raise ValueError.
    """
    original = original_error(error)
    return original is None or (isinstance(original, ValueError) and error.path is None)


def format_input_error(error: GraphQLError, document: DocumentNode) -> dict[str, Any]:
    """Return an error of graphql-core about a value that the client sent."""
    message, field = describe_input_error(error, document)
    return located_error_body(error, ErrorCode.BAD_USER_INPUT, message, field)


def describe_input_error(error: GraphQLError, document: DocumentNode) -> InputError:
    """Return the message and the field of an error about a value.

    The field is the innermost one that the value belongs to. An item of a list belongs to the
    list's field, and the message says which item it is.
    """
    where = _INVALID_VALUE.match(error.message)
    text = error.message[where.end() :] if where else error.message
    path = _path_in_document(error, document)
    if where and where["path"]:
        path += _parse_path(where["path"])
    if name := _FIELD_NAME.match(text):
        path += (name[1],) if path[-1:] != (name[1],) else ()
    elif missing := _MISSING_ARGUMENT.match(text):
        path = (missing[1],)
    cause = _scalar_error(error)
    message = without_values(text) if cause is None else str(cause)
    item = next((key for key in path if isinstance(key, int)), None)
    names = path if item is None else path[: path.index(item)]
    field = names[-1] if names else None
    return InputError(
        message if item is None else f"Item {item + 1}: {message}",
        field if isinstance(field, str) else None,
    )


def is_about_value(error: GraphQLError) -> bool:
    """Return whether an error of validation concerns a value, not a name or a type."""
    node = error.nodes[0] if error.nodes else None
    return bool(_MISSING_ARGUMENT.match(error.message)) or (
        isinstance(node, ValueNode | ObjectFieldNode) and not isinstance(node, VariableNode)
    )


def without_values(message: str) -> str:
    """Remove from a graphql-core message the values that the client sent, such as passwords."""
    message = _FOUND_TOKEN.sub(r"\1.", message)
    return _REJECTED_VALUE.sub(r"\1.", _FOUND_VALUE.sub(lambda cut: cut[1] or ".", message))


def _scalar_error(error: GraphQLError) -> ValueError | None:
    """Return the error of a scalar of this schema, whose text is a sentence for users."""
    original = original_error(error)
    return original if isinstance(original, ValueError) else None


def _parse_path(text: str) -> InputPath:
    return tuple(name or int(index) for name, index in _PATH_KEY.findall(text))


def _path_in_document(error: GraphQLError, document: DocumentNode) -> InputPath:
    """Return the argument and the input fields that contain the value in the document."""
    wrong = error.nodes[0] if error.nodes else None
    if wrong is None:
        return ()
    for operation in document.definitions:
        if isinstance(operation, OperationDefinitionNode):
            for variable in operation.variable_definitions or ():
                path = _path_to(variable, lambda node: node is wrong)
                if path is not None:
                    return _path_of_use(variable.variable.name.value, operation, document) + path
    return _path_to(document, lambda node: node is wrong) or ()


def _path_of_use(
    variable: str, operation: OperationDefinitionNode, document: DocumentNode
) -> InputPath:
    """Return the path to the first use of a variable, in its operation or else in a fragment."""
    fragments = (part for part in document.definitions if isinstance(part, FragmentDefinitionNode))
    paths = (
        _path_to(
            part.selection_set,
            lambda node: isinstance(node, VariableNode) and node.name.value == variable,
        )
        for part in (operation, *fragments)
    )
    return next(filter(None, paths), (variable,))


def _path_to(node: Node, matches: Callable[[Node], bool]) -> InputPath | None:
    """Return the names and the list indexes from a node down to the first one that matches."""
    own_name = (node.name.value,) if isinstance(node, ArgumentNode | ObjectFieldNode) else ()
    if matches(node):
        return own_name
    for key in node.keys:
        child = getattr(node, key, None)
        for index, each in enumerate(child if isinstance(child, list | tuple) else (child,)):
            path = _path_to(each, matches) if isinstance(each, Node) else None
            if path is not None:
                return own_name + ((index,) if isinstance(node, ListValueNode) else ()) + path
    return None
