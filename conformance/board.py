"""Checks the types of the board's modules, as the server sends them, with TypeScript."""

import tempfile
from pathlib import Path

from conformance.examples.typescript import run_tool
from slotlock.api.board.files import board_files

OPTIONS = (
    "--noEmit", "--allowJs", "--checkJs", "--strict", "--target", "es2022", "--module", "esnext",
    "--moduleResolution", "bundler", "--lib", "es2022,dom,dom.iterable", "--types", "",
)  # fmt: skip


def modules() -> dict[str, bytes]:
    """Return the modules by name, with those that the server writes."""
    return {name: content for name, content in board_files().items() if name.endswith(".js")}


def failed_checks(home: Path) -> list[str]:
    """Check the types with the compiler that is installed in `home`, and return what failed."""
    with tempfile.TemporaryDirectory(prefix="slotlock-board-") as folder:
        for name, content in modules().items():
            file = Path(folder) / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
        problem = run_tool(home, "tsc", *OPTIONS, *modules(), cwd=Path(folder))
    return [problem] if problem else []
