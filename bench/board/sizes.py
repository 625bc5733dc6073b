"""The sizes of the board's files by Brotli and by gzip, as the server sends them."""

from collections.abc import Iterable

from slotlock.api.board.files import (
    FAMILY,
    FOR_ORGANIZERS,
    START,
    board_files,
    is_module,
    served_files,
)

# The files that a first visit loads, with the texts of one language.
FIRST_FILES = frozenset({"board.css", "icon.svg", "messages/en.js", START})


def member_modules(names: Iterable[str]) -> set[str]:
    """Return the modules of all views for members, without texts and what only parents load."""
    modules = (name for name in names if is_module(name) and name != FAMILY)
    return {name for name in modules if not name.startswith(FOR_ORGANIZERS)}


def file_sizes() -> dict[str, tuple[int, int]]:
    """Return the size of each file in bytes, by Brotli and by gzip."""
    files = served_files(board_files(), "")
    return {
        name: (len(file.encoded("br")), len(file.encoded("gzip"))) for name, file in files.items()
    }


def size_lines() -> list[str]:
    """Return the sizes of each file, and the sums that a budget is about."""
    sizes = file_sizes()
    modules = set(filter(is_module, sizes))
    sums = {
        "first visit, without the page": FIRST_FILES,
        "its modules, without texts": modules & FIRST_FILES,
        "modules of all views for members, without texts": member_modules(sizes),
        "modules of all views, without texts": modules,
    }
    return [
        "bytes by Brotli, by gzip",
        *(
            f"{small:7,} {size:7,}  {name}{'' if name in FIRST_FILES else '  (later)'}"
            for name, (small, size) in sorted(sizes.items(), key=lambda item: -item[1][0])
        ),
        *(
            f"{sum(sizes[name][0] for name in names):7,} "
            f"{sum(sizes[name][1] for name in names):7,}  {title}"
            for title, names in sums.items()
        ),
        f"{1 + len(FIRST_FILES):7,}  requests of a first visit, and those to /graphql",
    ]
