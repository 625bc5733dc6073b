"""The GraphQL documents of the board, which its pages name instead of sending them."""

from base64 import urlsafe_b64encode
from hashlib import sha256
from pathlib import Path

BOARD_DIR = Path(__file__).parents[2] / "board"


def board_documents() -> dict[str, str]:
    """Return the texts of the documents by their ids: `board/<operation>/<hash of the text>`.

    So a page that is older than the server, or newer, never gets another document than it means,
    and goes on with all that did not change.
    """
    paths = sorted((BOARD_DIR / "operations").glob("*.graphql"))
    texts = {path.stem: path.read_text() for path in paths}
    return {f"board/{name}/{_hash(text)}": text for name, text in texts.items()}


def _hash(text: str) -> str:
    """Return 24 bits, because a compression finds nothing in them that it could leave out."""
    return urlsafe_b64encode(sha256(text.encode()).digest()[:3]).decode()
