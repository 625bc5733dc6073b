"""Documents that a server knows by their ids, and the list of the only ones that it executes.

The field calls them persisted documents, and those of a list trusted documents.
"""

from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

import orjson

SHA256_PREFIX = "sha256:"


class TrustedDocumentsError(Exception):
    """The list cannot be used; the text says why."""


def load_trusted_documents(path: Path) -> Mapping[str, str]:
    """Return the texts of a list by their ids, and by their SHA-256 in hexadecimal.

    The file is a manifest of Apollo, `{"operations": [{"id": "...", "body": "..."}]}`, or an object
    of texts by id, as Relay and GraphQL Code Generator write.

    Raises:
        TrustedDocumentsError: the file cannot be read, or has another format.
    """
    try:
        content = orjson.loads(path.read_bytes())
    except OSError as error:
        raise TrustedDocumentsError(f"{path} cannot be read: {error.strerror}") from None
    except orjson.JSONDecodeError as error:
        raise TrustedDocumentsError(f"{path} is not JSON: {error}") from None
    try:
        if "operations" in content:
            content = {each["id"]: each["body"] for each in content["operations"]}
        documents = {id_.removeprefix(SHA256_PREFIX): text for id_, text in content.items()}
        by_hash = {sha256(text.encode()).hexdigest(): text for text in documents.values()}
    except (AttributeError, KeyError, TypeError):
        raise TrustedDocumentsError(
            f"{path} is neither a persisted query manifest nor an object of documents by id"
        ) from None
    if not documents:
        raise TrustedDocumentsError(f"{path} lists no document")
    return documents | by_hash


def find_document(documents: Mapping[str, str], payload: Mapping[str, object]) -> str | None:
    """Return the text whose id a request has instead of a text, if there is one.

    The id is `documentId` (draft of GraphQL over HTTP, appendix A) or `sha256Hash` of the extension
    `persistedQuery` (Apollo).
    """
    id_, extensions = payload.get("documentId"), payload.get("extensions")
    if id_ is None and isinstance(extensions, dict):
        persisted = extensions.get("persistedQuery")
        id_ = persisted.get("sha256Hash") if isinstance(persisted, dict) else None
    return documents.get(id_.removeprefix(SHA256_PREFIX)) if isinstance(id_, str) else None
