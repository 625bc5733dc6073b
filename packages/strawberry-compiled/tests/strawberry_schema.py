"""A Strawberry schema with the kinds of fields, arguments and types that plans treat apart."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Annotated, Any, Generic, TypeVar

import strawberry
from strawberry import UNSET
from strawberry.dataloader import DataLoader
from strawberry.extensions import FieldExtension
from strawberry.permission import BasePermission

Item = TypeVar("Item")


@dataclass
class Shelf:
    """The context of one execution, with the keys of each batch that its loader loaded."""

    batches: list[list[int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.titles: DataLoader[int, str] = DataLoader(self._load)

    async def _load(self, keys: list[int]) -> list[str]:
        self.batches.append(keys)
        return [f"title {key}" for key in keys]


Info = strawberry.Info[Shelf, None]


@strawberry.enum
class Genre(Enum):
    NOVEL = "novel"
    POEM = strawberry.enum_value("poem", name="VERSE")


class NeverAllowed(BasePermission):
    """Denies everything."""

    message = "not allowed"

    def has_permission(self, *_: Any, **_arguments: Any) -> bool:
        """Return False."""
        return False


class Shout(FieldExtension):
    """Turns a result into capitals."""

    def resolve(self, next_: Any, source: Any, info: Any, **arguments: Any) -> Any:
        """Return the capitals."""
        return next_(source, info, **arguments).upper()


@strawberry.interface
class Work:
    number: int

    @strawberry.field
    async def title(self, info: Info) -> str:
        return await info.context.titles.load(self.number)

    @strawberry.field
    def where(self, info: Info) -> str:
        return f"{info.path} {info.field_name} {info.python_name} {info.variable_values}"


@strawberry.type
class Book(Work):
    genre: Genre
    missing: strawberry.Private[bool] = False

    @strawberry.field
    def others(self, count: int = 2) -> list["Book"]:
        if count > 4:
            raise ValueError("too many")
        return [Book(number=self.number * 10 + n, genre=Genre.POEM) for n in range(count)]


@strawberry.type
class Song(Work):
    seconds: float


@strawberry.type
class Page(Generic[Item]):
    items: list[Item]


@strawberry.input
class Span:
    start: int
    end: int | None = None


@strawberry.input
class Search:
    text: str
    genre: Genre | None = UNSET
    spans: list[Span] = strawberry.field(default_factory=list)
    words: list[str | None] | None = None
    page_size: int = 20
    outer: Span | None = strawberry.field(default=None, name="outermost")


@strawberry.input
class Edit:
    name: strawberry.Maybe[str]
    note: strawberry.Maybe[str | None]


BookPage = Page[Book]
Anything = Annotated[Book | Song | BookPage, strawberry.union("Anything")]


@dataclass
class Row:
    """A row of a database, which `strawberry.cast` can make a song."""

    number: int
    seconds: float


@strawberry.type
class Query:
    @strawberry.field
    async def works(self) -> list[Work]:
        return [Book(number=1, genre=Genre.NOVEL), Song(number=2, seconds=1.5)]

    @strawberry.field
    async def newest(self) -> Book:
        return Book(number=9, genre=Genre.POEM)

    @strawberry.field
    def books(self, info: Info, first: int = 3) -> list[Book]:
        assert info.context is not None
        return [Book(number=n, genre=Genre.NOVEL) for n in range(first)]

    @strawberry.field
    def anything(self, kind: str) -> Anything | None:
        match kind:
            case "book":
                return Book(number=1, genre=Genre.POEM)
            case "page":
                return BookPage(items=[Book(number=4, genre=Genre.POEM)])
            case "cast":
                return strawberry.cast(Song, Row(9, 2.5))  # type: ignore[return-value]
            case "error":
                raise RuntimeError("nothing")
            case "row":
                return Row(1, 2)  # type: ignore[return-value]
        return None

    @strawberry.field
    async def search(self, info: Info, search: Search, again: list[Search] | None = None) -> str:
        return f"{search} {again} {info.path.key}"

    @strawberry.field
    def edit(self, edit: Edit) -> str:
        return repr(edit)

    @strawberry.field(name="renamed")  # type: ignore[untyped-decorator]
    def original(self, some_ids: list[strawberry.ID], the_genre: Genre = Genre.POEM) -> str:
        return f"{some_ids} {the_genre}"

    @strawberry.field(permission_classes=[NeverAllowed])  # type: ignore[untyped-decorator]
    def forbidden(self) -> str:
        return "secret"

    @strawberry.field(extensions=[Shout()])  # type: ignore[untyped-decorator]
    def loud(self, word: str) -> str:
        return word

    @strawberry.field
    @staticmethod
    def fixed(number: int) -> int:
        return number

    @strawberry.field
    def parent(parent: strawberry.Parent[None]) -> str:  # noqa: N805
        return f"{parent}"

    @strawberry.field
    def root_parameter(root: Any, info: Info) -> str:  # noqa: N805
        return f"{root} {info.field_name}"

    @strawberry.field
    async def stream(self) -> list[int]:
        return [n async for n in _numbers()]


async def _numbers() -> AsyncIterator[int]:
    for n in range(3):
        yield n


schema = strawberry.Schema(query=Query, types=[Book, Song])
EXECUTABLE: Any = schema._schema
