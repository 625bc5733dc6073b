"""What modules declare inside functions has short names in what is sent, and nothing else."""

from slotlock.api.board.endpoint import ALONE, START, board_files, is_module
from slotlock.api.board.modules import merged_modules, tokens
from slotlock.api.board.names import KEYWORDS, NAME, with_short_names

# Each pair is a text, and how it is sent without its blanks.
SAMPLES = {
    "a declaration and its uses": ("f(value);", "f(value);"),
    "parameters": (
        "function load(address, { limit = top, name: title, ...others }, [first, , last] = []) {"
        " return [address, limit, title, others, first, last]; }",
        "function load(e,{limit:t=top,name:n,...r},[a,,o]=[]){return[e,t,n,r,a,o];}",
    ),
    "shorthand and keys": (
        "const open = (id, more) => run({ id, more: more.id, open, [id]: 1 });",
        "const open=(e,t)=>run({id:e,more:t.id,open,[e]:1});",
    ),
    "names of the browser are not hidden": (
        "const e = 1; const f = (value) => value + e + t;",
        "const e=1;const f=(n)=>n+e+t;",
    ),
    "blocks": (
        "function f(slot) { for (const each of slot) if (each) { const slot = 1; f(slot); }"
        " else f(each); f(slot, each); }",
        "function f(e){for(const t of e)if(t){const e=1;f(e);}else f(t);f(e,each);}",
    ),
    "templates": (
        "const f = (a1, b1) => `${a1 ? `${b1}` : { b1 }} a1 ${b1.a1}`;",
        "const f=(t,e)=>`${t?`${e}`:{b1:e}} a1 ${e.a1}`;",
    ),
    "classes": (
        "class Area { size = top; constructor(size) { this.size = size; }"
        " async read(size) { return this.size(size); } }",
        "class Area{size=top;constructor(e){this.size=e;}async read(e){return this.size(e);}}",
    ),
    "errors": (
        "function f() { let found; try { f(); } catch { found = 1; } try { f(); }"
        " catch (error) { f(error, found); } }",
        "function f(){let e;try{f();}catch{e=1;}try{f();}catch(t){f(t,e);}}",
    ),
    "functions in expressions": (
        "const f = (key) => (key ? (other) => other[key] : f, key); f(key);",
        "const f=(e)=>(e?(t)=>t[e]:f,e);f(key);",
    ),
    "declarations of several": (
        "function f() { const [a1, b1] = [1, 2], { c1: [d1] } = a1; return c1 + d1 + b1; }",
        "function f(){const[e,t]=[1,2],{c1:[n]}=e;return c1+n+t;}",
    ),
}


def test_only_what_functions_declare_has_short_names() -> None:
    sent = {title: "".join(with_short_names(tokens(text))) for title, (text, _) in SAMPLES.items()}
    assert sent == {title: expected for title, (_, expected) in SAMPLES.items()}


def test_all_else_that_modules_contain_is_sent_as_it_is() -> None:
    texts = {name: content.decode() for name, content in board_files().items() if is_module(name)}
    for file, text in merged_modules(texts, START, ALONE).items():
        before = tokens(text)
        for token, short in zip(before, with_short_names(before), strict=True):
            if not NAME.fullmatch(token) or token in KEYWORDS:
                assert short == token, file
            elif short != token:
                assert short.removeprefix(f"{token}:").isalpha(), file
