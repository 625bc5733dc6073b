"""The format of what a client sends on a socket: a message of another closes it with 4400."""

from typing import Any, TypeGuard


def is_object_or_null(payload: object) -> TypeGuard[dict[str, Any] | None]:
    """Whether this is what a payload may be that need not be there."""
    return payload is None or isinstance(payload, dict)


def is_operation_id(operation_id: object) -> TypeGuard[str]:
    """Whether an operation can be called so."""
    return isinstance(operation_id, str) and operation_id != ""


def is_subscribe_payload(payload: object) -> TypeGuard[dict[str, Any]]:
    """Whether a payload has the parts of a GraphQL request, whatever they say."""
    return (
        isinstance(payload, dict)
        and isinstance(payload.get("query"), str)
        and isinstance(payload.get("operationName"), str | None)
        and all(is_object_or_null(payload.get(name)) for name in ("variables", "extensions"))
    )
