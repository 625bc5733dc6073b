"""The sizes of the board's files by gzip, as the server sends them."""

from collections.abc import Iterable

from slotlock.api.board.endpoint import (
    FOR_ORGANIZERS,
    PRELOADED,
    board_files,
    is_module,
    served_files,
)

# What is no module, and the texts of one language.
OTHERS = ("board.css", "icon.svg", "messages/en.js")


# The files that a first visit loads.
FIRST_FILES = frozenset({*OTHERS, *PRELOADED})


def member_modules(names: Iterable[str]) -> set[str]:
    """Return the modules of all views for members, without texts."""
    return {name for name in names if is_module(name) and not name.startswith(FOR_ORGANIZERS)}


def file_sizes() -> dict[str, int]:
    """Return the compressed size of each file, in bytes."""
    return {name: len(file.compressed) for name, file in served_files(board_files(), "").items()}


def size_lines() -> list[str]:
    """Return the size of each file, and the sums that a budget is about."""
    sizes = file_sizes()
    first = FIRST_FILES
    modules = set(filter(is_module, sizes))
    sums = {
        "first visit, without the page": first,
        "its modules, without texts": modules & first,
        "modules of all views for members, without texts": member_modules(sizes),
        "modules of all views, without texts": modules,
    }
    return [
        *(
            f"{size:7,}  {name}{'' if name in first else '  (later)'}"
            for name, size in sorted(sizes.items(), key=lambda item: -item[1])
        ),
        *(f"{sum(sizes[name] for name in names):7,}  {title}" for title, names in sums.items()),
        f"{1 + len(first):7,}  requests of a first visit, and those to /graphql",
    ]
