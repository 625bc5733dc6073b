"""Errors that generated documents rarely meet: results equal those of graphql-core here, too."""

import asyncio
from typing import Any

import pytest
from graphql import build_schema, parse

from comparison import comparable, run_compiled, run_reference

SCHEMA: Any = build_schema("""
type Item { slow: String, fails: String!, item: Item, name: String }
type Query { item: Item, items: [Item], wait: String, number(n: Int! = 3, list: [Int!]): String }
""")


async def _fail_later(*_: object) -> str:
    await asyncio.sleep(0)
    raise RuntimeError("failed later")


async def _wait(*_arguments: object) -> str:
    for _ in range(10):
        await asyncio.sleep(0)
    return "done"


def _fail(*_: object) -> str:
    raise RuntimeError("failed")


ITEM, QUERY = SCHEMA.type_map["Item"].fields, SCHEMA.type_map["Query"].fields
ITEM["slow"].resolve = _fail_later
ITEM["fails"].resolve = _fail
QUERY["wait"].resolve = _wait
QUERY["number"].resolve = lambda *_, **arguments: repr(arguments)
QUERY["item"].resolve = lambda *_: {"name": "right", "item": {"name": "wrong"}}
QUERY["items"].resolve = lambda *_: [{"name": "right"}, {"name": "wrong"}, {"name": "right"}]
SCHEMA.type_map["Item"].is_type_of = lambda value, _info: value["name"] == "right"


@pytest.mark.parametrize(
    ("text", "variables", "errors"),
    [
        ("{ item { slow fails } wait }", {}, ["failed"]),
        (
            "{ items { slow fails } wait }",
            {},
            ["Expected value of type 'Item'", "failed", "failed"],
        ),
        ("{ item { name item { name } } }", {}, ["Expected value of type 'Item'"]),
        ("query($n: Int = 4) { number(n: $n) }", {}, []),
        ("query($n: Int) { number(n: $n) }", {}, []),
        ("query($n: Int = 4) { number(n: $n) }", {"n": None}, ["Argument 'n' has invalid value"]),
        ("query($n: Int = 4) { number(list: [1, $n]) }", {"n": None}, ["Argument 'list' has"]),
        ("query($n: Int!) { number(list: [1, $n]) }", {"n": 2}, []),
    ],
)
async def test_results_equal_those_of_graphql_core(
    text: str, variables: dict[str, Any], errors: list[str]
) -> None:
    document = parse(text)
    expected = await run_reference(SCHEMA, document, variables, None)
    result = await run_compiled(SCHEMA, document, variables, None)
    assert result is not None
    assert comparable(result) == comparable(expected)
    messages = sorted(error.message for error in result.errors or ())
    assert len(messages) == len(errors)
    assert all(message.startswith(start) for message, start in zip(messages, errors, strict=True))
