"""`python benchmark.py`: the CPU time to execute a document by its plan, and by graphql-core.

Resolvers return the same objects each time, so the figures are those of the execution alone:
variables, arguments, selections, completion. Both ways take turns in each round.
"""

import asyncio
import platform
import statistics
import time
from collections.abc import Callable
from datetime import UTC, datetime
from enum import Enum
from importlib.metadata import version
from inspect import isawaitable
from typing import Annotated, Any

import strawberry
from graphql import execute, parse

from strawberry_compiled import compile_operation

ROUNDS = 9
ROUND_S = 0.15

BOOKS = "query($first: Int!) { books(first: $first) { hasMore nodes { %s } } }"
ALL_FIELDS = "id title subtitle author published binding pages price isSold"
ORDER = """mutation($input: OrderInput!) {
  order(input: $input) {
    __typename
    ... on Ordered { copies book { id title } }
    ... on Refusal { message }
  }
}"""
DOCUMENTS: list[tuple[str, str, dict[str, Any]]] = [
    ("a mutation with a union", ORDER, {"input": {"bookId": "book1", "copies": 2}}),
    ("50 objects with 3 fields", BOOKS % "id title pages", {"first": 50}),
    ("50 objects with 9 fields", BOOKS % ALL_FIELDS, {"first": 50}),
]


@strawberry.enum
class Binding(Enum):
    """How a book is bound."""

    PAPER = "paper"
    CLOTH = "cloth"


@strawberry.type
class Book:
    """A book of a shop."""

    id: strawberry.ID
    title: str
    author: str
    published: datetime
    binding: Binding
    pages: int
    price: float
    is_sold: bool
    subtitle: str | None = None


@strawberry.type
class BookPage:
    """A page of a list of books."""

    nodes: list[Book]
    has_more: bool


@strawberry.interface
class Refusal:
    """Why an order is refused."""

    message: str


@strawberry.type
class SoldOut(Refusal):
    """The book is sold."""


@strawberry.type
class Ordered:
    """The order of a book."""

    book: Book
    copies: int


@strawberry.input
class OrderInput:
    """What is ordered."""

    book_id: strawberry.ID
    copies: int = 1
    note: str | None = None


Outcome = Annotated[Ordered | SoldOut, strawberry.union("Outcome")]
PAGE = BookPage(
    nodes=[
        Book(
            id=strawberry.ID(f"book{number}"),
            title=f"Title {number}",
            author="Ada",
            published=datetime(2030, 5, 17, tzinfo=UTC),
            binding=Binding.CLOTH,
            pages=300 + number,
            price=12.5,
            is_sold=False,
        )
        for number in range(50)
    ],
    has_more=True,
)


@strawberry.type
class Query:
    """The root of queries."""

    @strawberry.field
    async def books(self, first: int) -> BookPage:  # noqa: ARG002
        """Return a page of 50 books."""
        return PAGE


@strawberry.type
class Mutation:
    """The root of mutations."""

    @strawberry.mutation
    async def order(self, input: OrderInput) -> Outcome:  # noqa: A002
        """Order a book."""
        return Ordered(book=PAGE.nodes[0], copies=input.copies)


async def microseconds(run: Callable[[], Any]) -> float:
    """Execute an operation for a while; return the time of one execution."""
    count, start = 0, time.process_time()
    while (elapsed := time.process_time() - start) < ROUND_S:
        result = run()
        if isawaitable(result):
            result = await result
        count += 1
    if result.errors:
        raise SystemExit(f"the document failed: {result.errors}")
    return elapsed / count * 1e6


async def measure(name: str, text: str, variables: dict[str, Any]) -> None:
    """Print the times of a document by graphql-core and by its plan, and their ratio."""
    schema = strawberry.Schema(Query, Mutation)
    document = parse(text)
    operation = compile_operation(schema, document)
    if operation is None:
        raise SystemExit(f"plans do not support the document: {text}")

    def run_reference() -> Any:
        return execute(schema._schema, document, variable_values=variables)

    def run_compiled() -> Any:
        return operation.execute(variable_values=variables)

    rounds = [
        (await microseconds(run_reference), await microseconds(run_compiled)) for _ in range(ROUNDS)
    ]
    slow, fast = (statistics.median(times) for times in zip(*rounds, strict=True))
    ratio = statistics.median(one / other for one, other in rounds)
    print(f"| {name} | {slow:.0f} | {fast:.0f} | {ratio:.1f} |")


async def main() -> None:
    """Measure all documents."""
    versions = ", ".join(
        f"{name} {version(name)}" for name in ("graphql-core", "strawberry-graphql")
    )
    print(f"Python {platform.python_version()}, {versions}; medians of {ROUNDS} rounds")
    print("| microseconds of CPU an execution | graphql-core | plan | ratio |")
    print("|---|---|---|---|")
    for name, text, variables in DOCUMENTS:
        await measure(name, text, variables)


if __name__ == "__main__":
    asyncio.run(main())
