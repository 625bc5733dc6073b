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


class Kind(StrEnum):
    """The kinds of root fields that are counted apart, documents that were not seen lately, files.

    Files are those that organisers send and fetch outside of GraphQL.
    """

    READ = "read"
    WRITE = "write"
    SUBSCRIBE = "subscribe"
    SIGN_IN = "sign-in"
    ATTEMPT = "attempt"
    REDEEM = "redeem"
    LEAVE = "leave"
    DOCUMENT = "document"
    FILE = "file"


_KINDS = {
    OperationType.QUERY: (Kind.READ,),
    OperationType.MUTATION: (Kind.WRITE,),
    OperationType.SUBSCRIPTION: (Kind.SUBSCRIBE,),
}
# Those whose names say more than that they are mutations: signing in by a password, of which the
# dear kind is given back when none was hashed; bringing a token that nobody guesses, which is
# quickly refused and must not use up the former; ending sessions, which has to be possible whatever
# else they are used for.
SPECIAL = {
    "register": (Kind.SIGN_IN, Kind.ATTEMPT),
    "login": (Kind.SIGN_IN, Kind.ATTEMPT),
    "setPassword": (Kind.REDEEM,),
    "refreshSession": (Kind.REDEEM,),
    "logout": (Kind.LEAVE,),
    "endSession": (Kind.LEAVE,),
    "endOtherSessions": (Kind.LEAVE,),
    "changePassword": (Kind.LEAVE,),
}


def weights_of(
    operation: OperationDefinitionNode, fragments: Mapping[str, FragmentDefinitionNode]
) -> Mapping[Kind, int]:
    """How many root fields of each kind a valid operation has, those in fragments included.

    That a field may be left out, or is there twice and answered once, changes nothing: otherwise an
    alias would be a way round.
    """
    return Counter(
        kind
        for name in _roots(operation.selection_set, fragments)
        for kind in SPECIAL.get(name, _KINDS[operation.operation])
    )


def _roots(
    selection_set: SelectionSetNode, fragments: Mapping[str, FragmentDefinitionNode]
) -> Iterator[str]:
    for node in selection_set.selections:
        match node:
            case FieldNode():
                yield node.name.value
            case InlineFragmentNode():
                yield from _roots(node.selection_set, fragments)
            case FragmentSpreadNode():
                yield from _roots(fragments[node.name.value].selection_set, fragments)
