"""The document cache: each distinct text is parsed, measured and validated once."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from graphql import (
    DocumentNode,
    ExecutionResult,
    FieldNode,
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

from slotlock.graphql.core.errors import ErrorCode, error_body
from slotlock.graphql.execution.input_errors import (
    format_input_error,
    is_about_value,
    without_values,
)
from slotlock.graphql.execution.introspection import MAX_INTROSPECTION_VALUES, introspect
from slotlock.graphql.execution.segmented_cache import SegmentedCache
from slotlock.graphql.execution.trusted_documents import TrustedDocumentsError
from slotlock.graphql.limits.complexity import MAX_DOCUMENT_BYTES, MAX_TOKENS, exceeded_limit
from slotlock.graphql.limits.field_merging import field_merge_excess
from slotlock.graphql.limits.operation_kinds import (
    OperationKind,
    find_fragments,
    operation_costs,
)
from slotlock.infrastructure.bounded_cache import BoundedCache
from strawberry_compiled import CompiledOperation, compile_operation

# The parsed form of 2,000 characters can take 250 kB, so characters are limited, too.
MAX_CACHED_DOCUMENTS, MAX_CACHED_CHARACTERS = 500, 500_000
# A cache of its own, so that invalid documents do not evict the valid ones.
MAX_CACHED_REJECTIONS, MAX_CACHED_REJECTION_CHARACTERS = 100, 100_000
# Results of introspection take up to 4 MB.
MAX_CACHED_INTROSPECTIONS = 8
# Errors of validation, and errors of variables, in one response.
MAX_ERRORS = 5
# To locate an error graphql-core counts all lines before it. No valid document needs as many lines.
MAX_LINE_ENDS = 2_000
# Python rejects numbers of thousands of digits, with advice that does not concern clients.
MAX_DIGITS = 400
_SUGGESTION = re.compile(r" Did you mean '[^']*'\?\Z")
_TOO_MANY_DIGITS = re.compile(rf"[0-9]{{{MAX_DIGITS + 1}}}")

Errors = list[dict[str, Any]]


class DocumentError(Exception):
    """The request cannot be executed; `errors` is what the client receives."""

    def __init__(self, errors: Errors) -> None:
        super().__init__(errors)
        self.errors = errors


@dataclass(frozen=True, slots=True, eq=False)
class Operation:
    """One operation of a valid document."""

    document: DocumentNode
    name: str | None
    operation_type: OperationType
    # Response key and field name of each root field outside fragments, for the metrics.
    root_fields: tuple[tuple[str, str], ...]
    # Whether errors may suggest names of the schema, which reveals parts of it.
    allows_suggestions: bool
    # The result of introspection, if the operation selects nothing else and has no variables.
    result: ExecutionResult | None
    # None for an operation that only graphql-core can execute, such as introspection.
    compiled: CompiledOperation | None
    costs: Mapping[OperationKind, int]
    # Whether it is a mutation with more than one root field.
    has_several_mutations: bool

    @property
    def is_mutation(self) -> bool:
        """Whether it is a mutation."""
        return self.operation_type is OperationType.MUTATION


class DocumentCache:
    """Recently used documents with their operations, and invalid ones with their errors.

    What one address sends does not evict what several use, or one for longer: see SegmentedCache.
    Without introspection no error suggests a name, because suggestions reveal the schema, too.
    Requests may name one of the `known` documents by its id. If `only_known`, they name or send one
    of these.

    Raises:
        TrustedDocumentsError: only known documents are executed, and one is invalid.
    """

    def __init__(
        self,
        schema: GraphQLSchema,
        *,
        introspection: bool,
        known: Mapping[str, str] | None = None,
        only_known: bool = False,
    ) -> None:
        self.known = known or {}
        self.only_known = only_known
        self._schema = schema
        self._introspection = introspection
        self._rules = (
            *specified_rules,
            *(() if introspection else (NoSchemaIntrospectionCustomRule,)),
        )
        self._accepted: SegmentedCache[dict[str | None, Operation]]
        self._accepted = SegmentedCache(MAX_CACHED_DOCUMENTS, MAX_CACHED_CHARACTERS)
        self._introspections: SegmentedCache[dict[str | None, Operation]]
        self._introspections = SegmentedCache(MAX_CACHED_INTROSPECTIONS, MAX_CACHED_CHARACTERS)
        self._rejected: SegmentedCache[Errors] = SegmentedCache(
            MAX_CACHED_REJECTIONS, MAX_CACHED_REJECTION_CHARACTERS
        )
        if only_known:
            self._parse_known()

    def _parse_known(self) -> None:
        """Parse the known documents into a segment that has room for all of them."""
        protected: BoundedCache[dict[str | None, Operation]]
        protected = BoundedCache(len(self.known), sum(map(len, self.known.values())))
        self._accepted.protected = protected
        for id_, text in self.known.items():
            try:
                protected.put(text, self._parse_operations(text, None))
            except DocumentError as error:
                reason = error.errors[0]["message"]
                raise TrustedDocumentsError(f"the document {id_} is invalid: {reason}") from None

    def is_cached(self, text: str) -> bool:
        """Return whether the document needs no parsing."""
        return text in self._accepted or text in self._introspections or text in self._rejected

    def find_operation(self, text: str, name: str | None) -> Operation | None:
        """Return the operation of a document in use; None if `resolve_operation` must find it."""
        protected = self._accepted.protected
        operations = protected.get(text)
        if operations is None:
            return None
        protected.used.add(text)
        return operations.get(name)

    def resolve_operation(
        self, text: str, name: str | None, address: str | None = None
    ) -> Operation:
        """Return the operation of a document that a request from this address names.

        Raises:
            DocumentError: the document is invalid or too large, or has no such operation.
        """
        operations = self._accepted.use(text, address) or self._introspections.use(text, address)
        return _select_operation(operations or self.parse(text, address), name)

    def parse(self, text: str, address: str | None = None) -> dict[str | None, Operation]:
        """Parse, measure and validate a document from this address, and store the result.

        Raises:
            DocumentError: the document is invalid or too large.
        """
        operations = self._parse_operations(text, address)
        if any(operation.result is not None for operation in operations.values()):
            self._introspections.put(text, operations, address)
        else:
            self._accepted.put(text, operations, address)
        return operations

    def _parse_operations(self, text: str, address: str | None) -> dict[str | None, Operation]:
        if len(text) > MAX_DOCUMENT_BYTES or (
            not text.isascii() and len(text.encode()) > MAX_DOCUMENT_BYTES
        ):
            raise _too_large(f"A document may have at most {MAX_DOCUMENT_BYTES} bytes.")
        if _TOO_MANY_DIGITS.search(text):
            raise _too_large(f"A document may have at most {MAX_DIGITS} digits in a row.")
        if text.count("\n") + text.count("\r") > MAX_LINE_ENDS:
            raise _too_large(f"A document may have at most {MAX_LINE_ENDS} lines.")
        if errors := self._rejected.use(text, address):
            raise DocumentError(errors)
        try:
            return _build_operations(
                self._schema,
                self._parse_and_validate(text),
                allows_suggestions=self._introspection,
            )
        except DocumentError as error:
            self._rejected.put(text, error.errors, address)
            raise

    def _parse_and_validate(self, text: str) -> DocumentNode:
        try:
            document = parse(text, max_tokens=MAX_TOKENS)
            too_large = exceeded_limit(self._schema, document) or field_merge_excess(document)
        except GraphQLSyntaxError as error:
            if f"more than {MAX_TOKENS} tokens" in error.message:
                raise _too_large(f"A document may have at most {MAX_TOKENS} tokens.") from None
            if "nested too deeply" in error.message:
                raise _too_large("The document is nested too deeply.") from None
            raise DocumentError([_located_error(error, ErrorCode.PARSE_FAILED)]) from None
        except RecursionError:
            raise _too_large("The document is nested too deeply.") from None
        if too_large:
            raise _too_large(too_large)
        if errors := self._validate(document):
            raise DocumentError([self._format_validation_error(e, document) for e in errors])
        return document

    def _format_validation_error(
        self, error: GraphQLError, document: DocumentNode
    ) -> dict[str, Any]:
        if is_about_value(error):
            return format_input_error(error, document)
        body = _located_error(error, ErrorCode.VALIDATION_FAILED)
        if not self._introspection:
            # One of the rules ignores `hide_suggestions`.
            body["message"] = _SUGGESTION.sub("", body["message"])
        return body

    def _validate(self, document: DocumentNode) -> list[GraphQLError]:
        return validate(
            self._schema,
            document,
            self._rules,
            max_errors=MAX_ERRORS,
            hide_suggestions=not self._introspection,
        )


def _build_operations(
    schema: GraphQLSchema, document: DocumentNode, *, allows_suggestions: bool
) -> dict[str | None, Operation]:
    fragments = find_fragments(document)
    result = introspect(schema, document)
    if result is not None and result.errors:
        text = f"The result of introspection may have at most {MAX_INTROSPECTION_VALUES} values."
        raise _too_large(text)
    operations: dict[str | None, Operation] = {}
    for node in document.definitions:
        if not isinstance(node, OperationDefinitionNode):
            continue
        name = node.name.value if node.name else None
        costs = operation_costs(node, fragments)
        operations[name] = Operation(
            document,
            name,
            node.operation,
            _root_fields(node),
            allows_suggestions=allows_suggestions,
            result=result,
            compiled=compile_operation(
                schema,
                document,
                name,
                hide_suggestions=not allows_suggestions,
                max_coercion_errors=MAX_ERRORS,
            ),
            costs=costs,
            has_several_mutations=node.operation is OperationType.MUTATION
            and sum(costs.values()) > 1,
        )
    if len(operations) == 1:
        operations[None] = next(iter(operations.values()))  # it needs no name
    return operations


def _root_fields(node: OperationDefinitionNode) -> tuple[tuple[str, str], ...]:
    return tuple(
        ((field.alias or field.name).value, field.name.value)
        for field in node.selection_set.selections
        if isinstance(field, FieldNode)
    )


def _select_operation(operations: dict[str | None, Operation], name: str | None) -> Operation:
    operation = operations.get(name)
    if operation is None:
        raise _bad_input(
            "The document has no operation of this name."
            if name is not None
            else "Name one of the document's operations to execute."
        )
    return operation


def _bad_input(message: str) -> DocumentError:
    return DocumentError([error_body(ErrorCode.BAD_USER_INPUT, message)])


def _too_large(message: str) -> DocumentError:
    return DocumentError([error_body(ErrorCode.LIMIT_EXCEEDED, message)])


def _located_error(error: GraphQLError, code: ErrorCode) -> dict[str, Any]:
    message = without_values(error.message)
    return {**error.formatted, "message": message, "extensions": {"code": code}}
