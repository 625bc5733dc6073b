"""Documents: parsed, measured and validated once for each distinct text."""

from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

from graphql import (
    DocumentNode,
    FieldNode,
    GraphQLError,
    GraphQLSchema,
    GraphQLSyntaxError,
    OperationDefinitionNode,
    OperationType,
    parse,
    validate,
)

from slotlock.graphql.errors import Code, failure
from slotlock.graphql.limits import MAX_TEXT, MAX_TOKENS, excess

MAX_REMEMBERED = 500
MAX_VALIDATION_ERRORS = 10


class DocumentError(Exception):
    """The request cannot be executed; `errors` are as the client gets them."""

    def __init__(self, errors: list[dict[str, Any]]) -> None:
        super().__init__(errors)
        self.errors = errors


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation of a valid document."""

    document: DocumentNode
    name: str | None
    kind: OperationType
    # Response key and field name of each plain root field, for counting.
    roots: tuple[tuple[str, str], ...]


class Documents:
    """The texts seen lately; the least recently used is forgotten first."""

    def __init__(self, schema: GraphQLSchema) -> None:
        self._schema = schema
        self._seen: OrderedDict[str, dict[str | None, Operation]] = OrderedDict()

    def operation(self, text: str, name: str | None) -> Operation:
        """The operation that a request means. Errors: DocumentError."""
        operations = self._seen.get(text)
        if operations is None:
            operations = self._seen[text] = _operations(self._checked(text))
            if len(self._seen) > MAX_REMEMBERED:
                self._seen.popitem(last=False)
        else:
            self._seen.move_to_end(text)
        return _named(operations, name)

    def _checked(self, text: str) -> DocumentNode:
        if len(text) > MAX_TEXT:
            raise _too_large(f"A document has at most {MAX_TEXT} characters.")
        try:
            document = parse(text, max_tokens=MAX_TOKENS)
            too_large = excess(document)
        except GraphQLSyntaxError as error:
            if f"more than {MAX_TOKENS} tokens" in error.message:
                raise _too_large(f"A document has at most {MAX_TOKENS} tokens.") from None
            if "nested too deeply" in error.message:
                raise _too_large("The document is nested too deeply.") from None
            raise DocumentError([_located(error, Code.PARSE_FAILED)]) from None
        except RecursionError:
            raise _too_large("The document is nested too deeply.") from None
        if too_large:
            raise _too_large(too_large)
        if errors := validate(self._schema, document, max_errors=MAX_VALIDATION_ERRORS):
            raise DocumentError([_located(error, Code.VALIDATION_FAILED) for error in errors])
        return document


def _operations(document: DocumentNode) -> dict[str | None, Operation]:
    return {
        name: Operation(document, name, node.operation, _roots(node))
        for node in document.definitions
        if isinstance(node, OperationDefinitionNode)
        for name in [node.name.value if node.name else None]
    }


def _roots(node: OperationDefinitionNode) -> tuple[tuple[str, str], ...]:
    return tuple(
        ((field.alias or field.name).value, field.name.value)
        for field in node.selection_set.selections
        if isinstance(field, FieldNode)
    )


def _named(operations: dict[str | None, Operation], name: str | None) -> Operation:
    if name is None and len(operations) != 1:
        raise DocumentError(
            [failure(Code.BAD_USER_INPUT, "Name one of the document's operations to execute.")]
        )
    found = operations.get(name) if name is not None else next(iter(operations.values()))
    if found is None:
        raise DocumentError([failure(Code.BAD_USER_INPUT, "There is no operation of this name.")])
    return found


def _too_large(message: str) -> DocumentError:
    return DocumentError([failure(Code.LIMIT_EXCEEDED, message)])


def _located(error: GraphQLError, code: Code) -> dict[str, Any]:
    return {**error.formatted, "extensions": {"code": code}}
