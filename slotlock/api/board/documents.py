"""The GraphQL documents of the board, which its pages name instead of sending them."""

from base64 import urlsafe_b64encode
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

BOARD_DIR = Path(__file__).parents[2] / "board"


def board_documents() -> dict[str, str]:
    """Return the texts of the documents by their ids: `board/<operation>/<hash of the text>`.

    So a page that is older than the server, or newer, never gets another document than it means,
    and goes on with all that did not change.
    """
    folder = BOARD_DIR / "operations"
    fragments = [path.read_text() for path in sorted(folder.glob("fragments/*.graphql"))]
    paths = sorted(folder.glob("*.graphql"))
    texts = {path.stem: _with_fragments(path.read_text(), fragments) for path in paths}
    return {f"board/{name}/{_hash(text)}": text for name, text in texts.items()}


def _with_fragments(document: str, fragments: Sequence[str]) -> str:
    """Return a document with the fragments that it names, such as `...SlotFacts`, or they do."""
    while named := [
        each for each in fragments if f"...{each.split()[1]}\n" in document and each not in document
    ]:
        document += "".join(named)
    return document


def _hash(text: str) -> str:
    """Return 24 bits, because a compression finds nothing in them that it could leave out."""
    return urlsafe_b64encode(sha256(text.encode()).digest()[:3]).decode()
