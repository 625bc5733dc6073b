"""A module does the same with short names as it is sent."""

from collections.abc import Iterator

import pytest
from tree_sitter import Node, Parser

from slotlock.api.board.endpoint import ALONE, START, board_files, is_module
from slotlock.api.board.minifier import (
    JAVASCRIPT,
    SHORTHANDS,
    minify,
    shared_names,
    text_of,
    with_inlined_constants,
)
from slotlock.api.board.modules import merged_modules

# Each pair is a text, and how it is sent.
SAMPLES = {
    "comments and blanks": (
        "// @ts-check\n/** A comment. */\nf(/** @type {any} */ (1), 2); // more\ng( );\n",
        "f((1),2);\ng();\n",
    ),
    "texts and regular expressions": (
        r"""f(`/*  ${a ? `{${ { b: "}  " }.b}  ` : b / 2 / a}\n// x`, '//  "',"""
        r""" /\/\*[/"'`]+ {2}/u);""",
        r"""f(`/*  ${a?`{${{b:"}  "}.b}  `:b/2/a}\n// x`,'//  "',/\/\*[/"'`]+ {2}/u);""" "\n",
    ),
    "signs that are others together": ("f(a + +b, - -c, d++ + e);", "f(a+ +b,- -c,d++ +e);\n"),
    "signs that are a comment together": ("f(a < !--b, a <! b);", "f(a< !--b,a< !b);\n"),
    "numbers and regular expressions before names": (
        "f(1 .x, 1..x, 1?.x, 2. in a, .5 in a, /b/ in a, /b/g in a, a ? .5 : b);",
        "f(1 .x,1. .x,1?.x,2. in a,.5 in a,/b/ in a,/b/g in a,a?.5:b);\n",
    ),
    "names of all scripts": (
        "const é = 1; f({ é }, o.a\u0301 in o, class { get ℘() {} get \\u0061() {} });",
        "let a=1;\nf({é:a},o.a\u0301 in o,class{get ℘(){}get \\u0061(){}});\n",
    ),
    "the end of a block": ("if (f()) { g(); h(); }", "if(f()){g();h()}\n"),
    "a block that ends with an empty statement": (
        "{ if (f()) g(); else ; } { for (;;); } class A { ; one = 1; }",
        "{if(f())g();else;}\n{for(;;);}\nclass a{;one=1}\n",
    ),
    "exports and imports keep their names": (
        'import { one, two as other } from "./x.js";\n'
        "export const first = other;\n"
        "export function second(value) { return first + value + one; }\n"
        "const third = second(1);\nf(third, third);\n",
        'import{one,two as other}from"./x.js";\n'
        "export let first=other;\nexport function second(a){return first+a+one}\n"
        "let a=second(1);\nf(a,a);\n",
    ),
    "exports with other names": (
        "const one = 1; export { one, two as one2 }; let two; f(one, two);\n"
        'export { three } from "./x.js"; function three() {}',
        "let one=1;\nexport{one,two as one2};\nlet two;\nf(one,two);\n"
        'export{three}from"./x.js";\nfunction three(){}\n',
    ),
    "parameters": (
        "function load(address, { limit = top, name: title, ...others }, [one, , two] = []) {"
        " return [address, limit, title, others, one, two]; }",
        "function a(a,{limit:b=top,name:c,...d},[e,,f]=[]){return[a,b,c,d,e,f]}\n",
    ),
    "a default with a name that the body declares, too": (
        "export const top = 1; { const one = 2; const f = (two = top + name, three = () => four) =>"
        " { const top = 3; const name = 4; const four = 5; g(two, three, top, name, four); }; }",
        "export let top=1;\n{let a=2,b=(a=top+name,b=()=>four)=>{let c=3,d=4,e=5;g(a,b,c,d,e)}}\n",
    ),
    "a default of an error with a name that the block declares, too": (
        "try { f(); } catch ({ one = top }) { const top = 1; g(one, top); }",
        "try{f()}catch({one:a=top}){let b=1;g(a,b)}\n",
    ),
    "a key with a name that its method declares, too": (
        "export const one = 1; f({ [one](one) { g(one); } });",
        "export let one=1;\nf({[one](a){g(a)}});\n",
    ),
    "generators": (
        "function* each(one, { two = one }) { const three = yield two; yield* three; }"
        " f(async function* own(one) { yield own; }, each);",
        "function*a(a,{two:b=a}){let c=yield b;yield*c}\nf(async function*b(a){yield b},a);\n",
    ),
    "shorthands, keys and properties": (
        "const open = (id, more) => run({ id, more: more.id, open, [id]: 1 });",
        "let b=(a,c)=>run({id:a,more:c.id,open:b,[a]:1});\n",
    ),
    "names of the browser are not hidden": (
        "const value = x(); const f = (other) => value + other + a + b;",
        "let c=x();\nlet d=d=>c+d+a+b;\n",
    ),
    "a name that the browser has, too": (
        "const f = (name) => name + name; g(name);",
        "let a=a=>a+a;\ng(name);\n",
    ),
    "a name in an inner block": (
        "function f(slot) { for (const each of slot) if (each) { const slot = 1; f(slot, each); }}",
        "function c(a){for(let b of a)if(b){let a=1;c(a,b)}}\n",
    ),
    "a parameter that is not used beside a name of the body": (
        "function f(a1) { const b1 = 1; return b1; }",
        "function a(b){let a=1;return a}\n",
    ),
    "an error that is not used beside a name of the block": (
        "try { f(); } catch (a1) { const b1 = 1; g(b1); }",
        "try{f()}catch(b){let a=1;g(a)}\n",
    ),
    "a name that a function uses before its declaration": (
        "const f = () => later + g(); let later = 1;",
        "let b=()=>a+g();\nlet a=1;\n",
    ),
    "loops": (
        "for (let i = 0; i < n; i += 1) f(i); let last; for (last of []) f(last);",
        "for(let a=0;a<n;a+=1)f(a);\nlet a;\nfor(a of[])f(a);\n",
    ),
    "declarations one after the other": (
        "{ const one = f(); let two; const [three] = one; g(three); let four = 4; h(two, four); }"
        " let five = 5; let six = 6; f(five, six);",
        "{let a=f(),b,[c]=a;g(c);let d=4;h(b,d)}\nlet a=5;\nlet b=6;\nf(a,b);\n",
    ),
    "constants that are used once": (
        'f(A, B.c, -C); const A = "a\\n"; const B = 5; const C = .5; const D = 1; f(D, D);'
        " const E = 2; f({ E }); export const F = 3; const G = 4; function g(G) { return G; }"
        " let H = 6; H += 1; const [I] = []; f(I);",
        'f("a\\n",5 .c,-.5);\nlet a=1;\nf(a,a);\nlet c=2;\nf({E:c});\nexport let F=3;\n'
        "let b=4;\nfunction g(b){return b}\nlet d=6;\nd+=1;\nlet[e]=[];\nf(e);\n",
    ),
    "functions of one parameter": (
        "f(async (/** @type {any} */ one) => g(one), (two = 2) => two, ([three]) => three,"
        " (...four) => four, () => true, (five) => !false);",
        "f(async a=>g(a),(a=2)=>a,([a])=>a,(...a)=>a,()=>!0,a=>!!1);\n",
    ),
    "cases": (
        'switch (f()) { case 1: { const one = 1; g(one); } default: throw new Error("x"); }',
        'switch(f()){case 1:{let a=1;g(a)}default:throw new Error("x")}\n',
    ),
    "classes": (
        "class Area extends Base { size = top; #own = 1; constructor(size) { super(size);"
        " this.size = size; } async read(size) { return this.size(size); } } new Area(size);",
        "class a extends Base{size=top;#own=1;constructor(a){super(a);this.size=a}"
        "async read(a){return this.size(a)}}\nnew a(size);\n",
    ),
    "a function with a name of its own": (
        "f(function walk(node) { return walk(node.next); });",
        "f(function a(b){return a(b.next)});\n",
    ),
}


@pytest.mark.parametrize("title", SAMPLES)
def test_a_module_is_sent_in_its_shortest_form(title: str) -> None:
    text, sent = SAMPLES[title]
    assert minify(text) == sent


def test_what_a_module_imports_from_another_has_one_short_name_in_both() -> None:
    first = "export const one = 1; export let two = (a) => ({ one, a });\n"
    other = (
        'import { one, two } from "./first.js";\nconst a = two(two(one)); f(a, b.two, { two });\n'
    )
    shared = shared_names([first, other])
    assert shared == {"two": "A", "one": "B"}
    assert minify(first, shared) == "export let B=1;\nexport let A=a=>({one:B,a});\n"
    assert minify(other, shared) == (
        'import{B,A}from"./first.js";\nlet a=A(A(B));\nf(a,b.two,{two:A});\n'
    )


def test_the_files_of_the_board_have_the_same_statements_as_their_modules() -> None:
    texts = {name: content.decode() for name, content in board_files().items() if is_module(name)}
    merged = merged_modules(texts, START, ALONE)
    shared = shared_names(merged.values())
    for file, text in merged.items():
        sent = minify(text, shared)
        whole = with_inlined_constants(text)
        assert [*_tokens(_parsed(sent))] == [*_tokens(_parsed(whole))], file
        assert len(sent.splitlines()) < len(text.splitlines())


@pytest.mark.parametrize(
    "text",
    [
        "const a = ;",
        "var a = 1;",
        "for (var a of []) f(a);",
        "const a = 1; eval('a');",
        "const __proto__ = 1; f({ __proto__ });",
        "const a = 1; f(\\u0061);",
        'const a = 1; export * as a from "./x.js";',
        "function f() { return\n1; }",
        "function f() { const a = 1\nreturn a; }",
        "function* f() { yield\n1; }",
        "a: for (;;) { break\na; }",
        "function f(a, b) { a\n++\nb; }",
        "class A { get\none() {} }",
        "class A { one = 1\ntwo = 2 }",
    ],
)
def test_no_file_is_sent_that_would_not_do_the_same(text: str) -> None:
    with pytest.raises(ValueError, match="module"):
        minify(text)


def _parsed(module: str) -> Node:
    return Parser(JAVASCRIPT).parse(module.encode()).root_node


def _tokens(node: Node) -> Iterator[str]:
    """Yield what a module consists of, with the names of variables without their letters.

    What is sent in a shorter form is the same in both.
    """
    parent = node.parent.type if node.parent else ""
    if node.type == "identifier":
        yield "name"
    elif node.type in SHORTHANDS:
        yield from (text_of(node), ":", "name")
    elif node.type in {"true", "false"}:
        yield from ("!", str(int(node.type == "false")))
    elif node.type == "const" or (node.type == "," and parent == "lexical_declaration"):
        yield "let"
    elif node.type == "comment" or node.type == ";":
        return
    elif node.type == "formal_parameters" and parent == "arrow_function" and _is_one_name(node):
        yield "name"
    elif node.children:
        for child in node.children:
            yield from _tokens(child)
    else:
        yield text_of(node)


def _is_one_name(node: Node) -> bool:
    return [each.type for each in node.named_children if each.type != "comment"] == ["identifier"]
