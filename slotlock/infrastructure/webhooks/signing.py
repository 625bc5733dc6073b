"""Signs requests by Standard Webhooks 1.0: https://www.standardwebhooks.com."""

import base64
import hmac
from collections.abc import Iterable

SECRET_PREFIX = "whsec_"  # noqa: S105 - the beginning of all secrets


def to_secret(key: bytes) -> str:
    """Return the text of a secret."""
    return SECRET_PREFIX + base64.b64encode(key).decode()


def signed_headers(
    message_id: str, timestamp_s: int, body: bytes, secrets: Iterable[str]
) -> dict[str, str]:
    """Return the headers with the signatures of a message, one for each secret."""
    signed = b".".join((message_id.encode(), str(timestamp_s).encode(), body))
    keys = (base64.b64decode(secret.removeprefix(SECRET_PREFIX)) for secret in secrets)
    digests = (hmac.digest(key, signed, "sha256") for key in keys)
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(timestamp_s),
        "webhook-signature": " ".join(f"v1,{base64.b64encode(each).decode()}" for each in digests),
    }
