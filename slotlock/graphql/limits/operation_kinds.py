"""What kind of thing an operation asks for, and how many of it."""

from collections import Counter
from collections.abc import Iterator, Mapping
from enum import StrEnum

from graphql import (
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    InlineFragmentNode,
    OperationDefinitionNode,
    OperationType,
    SelectionSetNode,
)


class OperationKind(StrEnum):
    """The kinds of root fields that are counted apart, documents that were not seen lately, files.

    Files are those that organisers send and fetch outside of GraphQL.
    """

    READ = "read"
    WRITE = "write"
    SUBSCRIBE = "subscribe"
    SIGN_IN = "sign-in"
    SIGN_IN_ATTEMPT = "sign-in-attempt"
    REDEEM_TOKEN = "redeem-token"  # noqa: S105
    SIGN_OUT = "sign-out"
    DOCUMENT = "document"
    FILE = "file"


_DEFAULT_KINDS = {
    OperationType.QUERY: (OperationKind.READ,),
    OperationType.MUTATION: (OperationKind.WRITE,),
    OperationType.SUBSCRIPTION: (OperationKind.SUBSCRIBE,),
}
# Those whose names say more than that they are mutations: signing in by a password, of which the
# dear kind is given back when none was hashed; bringing a token that nobody guesses, which is
# quickly refused and must not use up the former; ending sessions, which has to be possible whatever
# else they are used for.
FIELD_KINDS = {
    "register": (OperationKind.SIGN_IN, OperationKind.SIGN_IN_ATTEMPT),
    "login": (OperationKind.SIGN_IN, OperationKind.SIGN_IN_ATTEMPT),
    "setPassword": (OperationKind.REDEEM_TOKEN,),
    "refreshSession": (OperationKind.REDEEM_TOKEN,),
    "logout": (OperationKind.SIGN_OUT,),
    "endSession": (OperationKind.SIGN_OUT,),
    "endOtherSessions": (OperationKind.SIGN_OUT,),
    "changePassword": (OperationKind.SIGN_OUT,),
}


def operation_costs(
    operation: OperationDefinitionNode, fragments: Mapping[str, FragmentDefinitionNode]
) -> Mapping[OperationKind, int]:
    """How many root fields of each kind a valid operation has, those in fragments included.

    That a field may be left out, or is there twice and answered once, changes nothing: otherwise an
    alias would be a way round.
    """
    return Counter(
        kind
        for name in _root_field_names(operation.selection_set, fragments)
        for kind in FIELD_KINDS.get(name, _DEFAULT_KINDS[operation.operation])
    )


def _root_field_names(
    selection_set: SelectionSetNode, fragments: Mapping[str, FragmentDefinitionNode]
) -> Iterator[str]:
    for node in selection_set.selections:
        match node:
            case FieldNode():
                yield node.name.value
            case InlineFragmentNode():
                yield from _root_field_names(node.selection_set, fragments)
            case FragmentSpreadNode():
                yield from _root_field_names(fragments[node.name.value].selection_set, fragments)
