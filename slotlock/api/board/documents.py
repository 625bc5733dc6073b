"""The GraphQL documents of the board, which its pages name instead of sending them."""

from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

BOARD_DIR = Path(__file__).parents[2] / "board"
HASH_CHARS = 16


def board_operations() -> dict[str, str]:
    """Return the texts of the documents by the names of their operations."""
    paths = sorted((BOARD_DIR / "operations").glob("*.graphql"))
    return {path.stem: path.read_text() for path in paths}


def id_prefix(operations: Mapping[str, str]) -> str:
    """Return what the ids begin with: the same for the same documents only.

    So a page that is older than the server, or newer, never gets another document than it means.
    """
    return f"board/{sha256(repr(operations).encode()).hexdigest()[:HASH_CHARS]}/"


def board_documents() -> dict[str, str]:
    """Return the texts of the documents by their ids."""
    operations = board_operations()
    prefix = id_prefix(operations)
    return {prefix + name: text for name, text in operations.items()}
