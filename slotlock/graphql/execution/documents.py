"""Documents: parsed, measured and validated once for each distinct text."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from graphql import (
    DocumentNode,
    FieldNode,
    FragmentDefinitionNode,
    GraphQLError,
    GraphQLSchema,
    GraphQLSyntaxError,
    NoSchemaIntrospectionCustomRule,
    OperationDefinitionNode,
    OperationType,
    parse,
    specified_rules,
    validate,
)

from slotlock.graphql.core.errors import ErrorCode, error_body, without_values
from slotlock.graphql.limits.complexity import MAX_DOCUMENT_BYTES, MAX_TOKENS, exceeded_limit
from slotlock.graphql.limits.field_merging import field_merge_excess
from slotlock.graphql.limits.operation_kinds import OperationKind, operation_costs
from slotlock.infrastructure.lru_cache import LRUCache

# What a text of 2,000 characters is parsed to can take 250 kB, so texts are not only counted.
MAX_CACHED_DOCUMENTS, MAX_CACHED_CHARACTERS = 500, 500_000
# Apart from the others, so that nonsense drives out nothing that is asked for by everybody.
MAX_CACHED_REJECTIONS, MAX_CACHED_REJECTION_CHARACTERS = 100, 100_000
# Of a text that does not validate, and of variables that are no values of their types.
MAX_ERRORS = 5
# Each error counts the lines before it. More than there may be tokens is of no use.
MAX_LINE_ENDS = 2_000
# Python refuses to read numbers of thousands of digits, with advice that is not for clients.
MAX_DIGITS = 400
_SUGGESTION = re.compile(r" Did you mean '[^']*'\?\Z")
_TOO_MANY_DIGITS = re.compile(rf"[0-9]{{{MAX_DIGITS + 1}}}")

Errors = list[dict[str, Any]]


class DocumentError(Exception):
    """The request cannot be executed; `errors` are as the client gets them."""

    def __init__(self, errors: Errors) -> None:
        super().__init__(errors)
        self.errors = errors


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation of a valid document."""

    document: DocumentNode
    name: str | None
    operation_type: OperationType
    # Response key and field name of each plain root field, for counting.
    root_fields: tuple[tuple[str, str], ...]
    # Whether errors may suggest names of the schema.
    allows_suggestions: bool
    costs: Mapping[OperationKind, int]

    @property
    def is_mutation(self) -> bool:
        """Whether it is a mutation."""
        return self.operation_type is OperationType.MUTATION

    @property
    def has_several_mutations(self) -> bool:
        """Whether it is a mutation that may have more than one root field."""
        return self.is_mutation and sum(self.costs.values()) > 1


class DocumentCache:
    """The texts seen lately, with what was made of them; the refused ones beside.

    Without introspection no error suggests a name, which would be introspection by and by.
    """

    def __init__(self, schema: GraphQLSchema, *, introspection: bool) -> None:
        self._schema = schema
        self._introspection = introspection
        self._rules = (
            *specified_rules,
            *(() if introspection else (NoSchemaIntrospectionCustomRule,)),
        )
        self._accepted: LRUCache[dict[str | None, Operation]]
        self._accepted = LRUCache(MAX_CACHED_DOCUMENTS, MAX_CACHED_CHARACTERS)
        self._rejected: LRUCache[Errors] = LRUCache(
            MAX_CACHED_REJECTIONS, MAX_CACHED_REJECTION_CHARACTERS
        )

    def is_cached(self, text: str) -> bool:
        """Whether to read this text costs nothing."""
        return text in self._accepted or text in self._rejected

    def resolve_operation(self, text: str, name: str | None) -> Operation:
        """The operation that a request means. Errors: DocumentError."""
        operations = self._accepted.get(text)
        if operations is None:
            operations = self._parse_operations(text)
            self._accepted.put(text, operations)
        return _select_operation(operations, name)

    def _parse_operations(self, text: str) -> dict[str | None, Operation]:
        if len(text) > MAX_DOCUMENT_BYTES or (
            not text.isascii() and len(text.encode()) > MAX_DOCUMENT_BYTES
        ):
            raise _too_large(f"A document has at most {MAX_DOCUMENT_BYTES} bytes.")
        if _TOO_MANY_DIGITS.search(text):
            raise _too_large(f"A document has at most {MAX_DIGITS} digits in a row.")
        if text.count("\n") + text.count("\r") > MAX_LINE_ENDS:
            raise _too_large(f"A document has at most {MAX_LINE_ENDS} line ends.")
        if errors := self._rejected.get(text):
            raise DocumentError(errors)
        try:
            return _build_operations(
                self._parse_and_validate(text), allows_suggestions=self._introspection
            )
        except DocumentError as error:
            self._rejected.put(text, error.errors)
            raise

    def _parse_and_validate(self, text: str) -> DocumentNode:
        try:
            document = parse(text, max_tokens=MAX_TOKENS)
            too_large = exceeded_limit(self._schema, document) or field_merge_excess(document)
        except GraphQLSyntaxError as error:
            if f"more than {MAX_TOKENS} tokens" in error.message:
                raise _too_large(f"A document has at most {MAX_TOKENS} tokens.") from None
            if "nested too deeply" in error.message:
                raise _too_large("The document is nested too deeply.") from None
            raise DocumentError([_located_error(error, ErrorCode.PARSE_FAILED)]) from None
        except RecursionError:
            raise _too_large("The document is nested too deeply.") from None
        if too_large:
            raise _too_large(too_large)
        if errors := self._validate(document):
            raise DocumentError([self._format_validation_error(error) for error in errors])
        return document

    def _format_validation_error(self, error: GraphQLError) -> dict[str, Any]:
        shown = _located_error(error, ErrorCode.VALIDATION_FAILED)
        message = without_values(error.message)
        # One of the rules suggests something whatever it is told.
        return {
            **shown,
            "message": message if self._introspection else _SUGGESTION.sub("", message),
        }

    def _validate(self, document: DocumentNode) -> list[GraphQLError]:
        return validate(
            self._schema,
            document,
            self._rules,
            max_errors=MAX_ERRORS,
            hide_suggestions=not self._introspection,
        )


def _build_operations(
    document: DocumentNode, *, allows_suggestions: bool
) -> dict[str | None, Operation]:
    fragments = {
        node.name.value: node
        for node in document.definitions
        if isinstance(node, FragmentDefinitionNode)
    }
    return {
        name: Operation(
            document,
            name,
            node.operation,
            _root_fields(node),
            allows_suggestions=allows_suggestions,
            costs=operation_costs(node, fragments),
        )
        for node in document.definitions
        if isinstance(node, OperationDefinitionNode)
        for name in [node.name.value if node.name else None]
    }


def _root_fields(node: OperationDefinitionNode) -> tuple[tuple[str, str], ...]:
    return tuple(
        ((field.alias or field.name).value, field.name.value)
        for field in node.selection_set.selections
        if isinstance(field, FieldNode)
    )


def _select_operation(operations: dict[str | None, Operation], name: str | None) -> Operation:
    if name is None and len(operations) != 1:
        raise DocumentError(
            [
                error_body(
                    ErrorCode.BAD_USER_INPUT, "Name one of the document's operations to execute."
                )
            ]
        )
    found = operations.get(name) if name is not None else next(iter(operations.values()))
    if found is None:
        raise DocumentError(
            [error_body(ErrorCode.BAD_USER_INPUT, "There is no operation of this name.")]
        )
    return found


def _too_large(message: str) -> DocumentError:
    return DocumentError([error_body(ErrorCode.LIMIT_EXCEEDED, message)])


def _located_error(error: GraphQLError, code: ErrorCode) -> dict[str, Any]:
    return {**error.formatted, "extensions": {"code": code}}
