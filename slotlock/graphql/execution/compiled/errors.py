"""Response paths and the field errors of one execution."""

from collections.abc import Iterator

from graphql import GraphQLError
from graphql.pyutils import Path

# A linked path from a value to the root: the path before it, its key, and the name of the object
# type for a field. The fields are those of graphql-core's `Path`, but a plain tuple is made in a
# tenth of the time, and most paths are never read.
ValuePath = tuple["ValuePath | None", str | int, str | None]


def to_path(path: ValuePath) -> Path:
    """Return the path as resolvers expect it."""
    prev, key, type_name = path
    return Path(to_path(prev) if prev is not None else None, key, type_name)


def path_keys(path: ValuePath) -> list[str | int]:
    """Return the keys of a path from the root to the value."""
    keys = [one[1] for one in _to_root(path)]
    keys.reverse()
    return keys


def _to_root(path: ValuePath | None) -> Iterator[ValuePath]:
    while path is not None:
        yield path
        path = path[0]


class FieldErrors:
    """The errors of one execution, at most one for each value that became null.

    An error below a value that is null already is dropped: the value that it belongs to is not in
    the response.
    """

    __slots__ = ("_nulled_paths", "errors")

    def __init__(self) -> None:
        self.errors: list[GraphQLError] = []
        self._nulled_paths: set[ValuePath | None] = set()

    def add(self, error: GraphQLError, path: ValuePath | None) -> None:
        """Add the error that made the value at this path null; None is the whole response."""
        if None in self._nulled_paths or any(one in self._nulled_paths for one in _to_root(path)):
            return
        self._nulled_paths.add(path)
        self.errors.append(error)
