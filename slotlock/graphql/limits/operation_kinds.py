"""The kinds of operations that rate limits count separately."""

from collections import Counter
from collections.abc import Iterator, Mapping
from enum import StrEnum

from graphql import (
    DocumentNode,
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    InlineFragmentNode,
    OperationDefinitionNode,
    OperationType,
    SelectionSetNode,
)


class OperationKind(StrEnum):
    """Kinds of root fields, new documents, and files and frames outside GraphQL.

    The values are parts of Redis keys.
    """

    READ = "read"
    WRITE = "write"
    SUBSCRIBE = "subscribe"
    SIGN_IN = "sign-in"
    SIGN_IN_ATTEMPT = "sign-in-attempt"
    REDEEM_TOKEN = "redeem-token"  # noqa: S105
    REQUEST_RESET = "request-reset"
    SIGN_OUT = "sign-out"
    DOCUMENT = "document"
    FILE = "file"
    FRAME = "frame"


_DEFAULT_KINDS = {
    OperationType.QUERY: (OperationKind.READ,),
    OperationType.MUTATION: (OperationKind.WRITE,),
    OperationType.SUBSCRIPTION: (OperationKind.SUBSCRIBE,),
}
# Fields with their own rate limit. A password sign-in is charged twice; SIGN_IN, the expensive
# kind, is refunded if no password was hashed. Invalid tokens are cheap to reject and must not use
# up the limit of sign-ins. Ending a session stays possible whatever else used up the limits.
FIELD_KINDS = {
    "register": (OperationKind.SIGN_IN, OperationKind.SIGN_IN_ATTEMPT),
    "login": (OperationKind.SIGN_IN, OperationKind.SIGN_IN_ATTEMPT),
    "startSignIn": (OperationKind.SIGN_IN_ATTEMPT,),
    "finishSignIn": (OperationKind.SIGN_IN_ATTEMPT,),
    "linkSignIn": (OperationKind.SIGN_IN_ATTEMPT,),
    "unlinkSignIn": (OperationKind.SIGN_OUT,),
    "tokenOwner": (OperationKind.REDEEM_TOKEN,),
    "setPassword": (OperationKind.REDEEM_TOKEN,),
    "resetPassword": (OperationKind.REDEEM_TOKEN,),
    "verifyEmail": (OperationKind.REDEEM_TOKEN,),
    "requestPasswordReset": (OperationKind.REQUEST_RESET,),
    "refreshSession": (OperationKind.REDEEM_TOKEN,),
    "logout": (OperationKind.SIGN_OUT,),
    "endSession": (OperationKind.SIGN_OUT,),
    "endOtherSessions": (OperationKind.SIGN_OUT,),
    "changePassword": (OperationKind.SIGN_OUT,),
    "changeEmail": (OperationKind.SIGN_IN,),
}


def find_fragments(document: DocumentNode) -> Mapping[str, FragmentDefinitionNode]:
    """Return the fragments of a document by name."""
    return {
        node.name.value: node
        for node in document.definitions
        if isinstance(node, FragmentDefinitionNode)
    }


def operation_costs(
    operation: OperationDefinitionNode, fragments: Mapping[str, FragmentDefinitionNode]
) -> Mapping[OperationKind, int]:
    """Count the root fields of a valid operation by kind, including those in fragments.

    Skipped and repeated fields count, too: otherwise aliases would circumvent the limits.
    """
    return Counter(
        kind
        for name in root_field_names(operation.selection_set, fragments)
        for kind in FIELD_KINDS.get(name, _DEFAULT_KINDS[operation.operation])
    )


def root_field_names(
    selection_set: SelectionSetNode, fragments: Mapping[str, FragmentDefinitionNode]
) -> Iterator[str]:
    """Yield the names of the root fields of a valid operation, including those in fragments."""
    for node in selection_set.selections:
        match node:
            case FieldNode():
                yield node.name.value
            case InlineFragmentNode():
                yield from root_field_names(node.selection_set, fragments)
            case FragmentSpreadNode():
                yield from root_field_names(fragments[node.name.value].selection_set, fragments)
