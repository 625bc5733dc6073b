"""A module does the same as it is sent: without comments and blanks of layout."""

from collections.abc import Iterator

import pytest
import tree_sitter_javascript
from tree_sitter import Language, Node, Parser

from slotlock.api.board.files import ALONE, START
from slotlock.api.board.modules import merged_modules, stripped
from tests.support.board.sources import sent_modules

JAVASCRIPT = Language(tree_sitter_javascript.language())
MERGED = merged_modules(sent_modules(), START, alone=ALONE)


def test_a_module_is_sent_without_comments_and_blanks_of_layout() -> None:
    module = """\
// @ts-check
/**
 * A comment.
 *
 * @param {any} slot
 */
export function f(slot) {

  // Why.
  const first = all.map((/** @type {any} */ each) => each["//"]); // another one
  const last = first
    .at(
      -1,
    );
  /** @type {any} */ (first).size += /\\/\\*+ \\/\\/x/.test(`  ${slot}  //x`); /* a sign */
}
"""
    assert stripped(module) == (
        'export function f(slot) {const first=all.map((each)=>each["//"]);'
        "const last=first.at(-1,);"
        "(first).size += /\\/\\*+ \\/\\/x/.test(`  ${slot}  //x`); /* a sign */}\n"
    )


@pytest.mark.parametrize("file", MERGED)
def test_a_file_has_the_same_tokens_as_its_modules(file: str) -> None:
    module, sent = MERGED[file], stripped(MERGED[file])
    assert [*_tokens(_parsed(sent))] == [*_tokens(_parsed(module))]
    assert "/**" not in sent
    # A text of several lines would lose the blanks that begin them.
    assert [line for line in sent.splitlines() if line.count("`") % 2] == []


def _parsed(module: str) -> Node:
    root = Parser(JAVASCRIPT).parse(module.encode()).root_node
    assert not root.has_error
    return root


def _tokens(node: Node) -> Iterator[bytes | None]:
    """Yield what a module consists of, with the texts as they are."""
    if node.type in ("string", "regex") or not node.children:
        if node.type != "comment":
            yield node.text
    else:
        for child in node.children:
            yield from _tokens(child)
