"""The modules of the board as they are sent: few files, without comments and indentation.

A browser loads the modules of members with each page, and those of the folder `views/organizer`
with the first view for organizers. Each is one file, so that a visit needs few requests and the
compression finds what the modules repeat.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from posixpath import dirname, join, normpath, relpath

IMPORT = re.compile(r'^import \{([^}]*)\} from "([^"]+)";\n', re.MULTILINE)
# A slash behind one of these begins a regular expression, and is no division.
OPERATOR = r"[(,=:\[!&|?>]"
REGEX = r"/(?:[^/\\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+/"
TOKEN = re.compile(
    r"(?P<gap>(?:\s|/\*(?:[^*]|\*(?!/))*\*/|//[^\n]*)+)"
    r"""|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'"""
    rf"|(?:(?<={OPERATOR})|(?<={OPERATOR}\s)|(?<=return\s)){REGEX}"
    r"|(?P<brace>[`{}])|[^\s\"'`/{}]+|/"
)
# What follows a backtick or an expression in a template, up to its end or the next expression.
TEMPLATE_TEXT = re.compile(r"(?:[^`\\$]|\\.|\$(?!\{))*(?:`|\$\{)", re.DOTALL)


def merged_modules(
    modules: Mapping[str, str], start: str, alone: Collection[str]
) -> dict[str, str]:
    """Return the modules by the file that contains them.

    A module that is `alone` is in a file with those of the folder of its name, if there is one;
    all others are in the file of the module `start`.
    """
    file_of = {name: _file_of(name, start, alone) for name in modules}
    imports = {name: _imports(name, text) for name, text in modules.items()}
    parts: dict[str, list[str]] = {}
    for name in _in_order((start, *modules), imports):
        parts.setdefault(file_of[name], []).append(name)
    merged = dict[str, str]()
    for file, names in parts.items():
        used: dict[str, set[str]] = {}
        for name in names:
            for other, what in imports[name]:
                if file_of[other] != file:
                    used.setdefault(file_of[other], set()).update(what)
        lines = [_import(file, other, used[other]) for other in used]
        merged[file] = "".join(lines) + "\n".join(IMPORT.sub("", modules[each]) for each in names)
    return merged


def _file_of(name: str, start: str, alone: Collection[str]) -> str:
    owners = (each for each in alone if f"{name}/".startswith((f"{each}/", each[:-3] + "/")))
    return next(owners, start)


def _imports(name: str, text: str) -> list[tuple[str, list[str]]]:
    """Return what a module imports, by the names of other modules."""
    return [
        (normpath(join(dirname(name), path)), re.findall(r"\w+", what))
        for what, path in IMPORT.findall(text)
    ]


def _in_order(
    names: Iterable[str], imports: Mapping[str, list[tuple[str, list[str]]]]
) -> Iterable[str]:
    """Return modules after those that they import, as a browser runs them."""
    order = dict[str, None]()
    found = set[str]()
    waiting = [*names][::-1]
    while waiting:
        name = waiting[-1]
        found.add(name)
        following = [other for other, _ in imports[name] if other not in found]
        if following:
            waiting.append(following[0])
        else:
            order[waiting.pop()] = None
    return order


def _import(file: str, other: str, used: Iterable[str]) -> str:
    path = relpath(other, dirname(file) or ".")
    path = path if path.startswith(".") else f"./{path}"
    return f'import {{ {", ".join(sorted(used))} }} from "{path}";\n'


def without_comments(module: str) -> str:
    """Return a module without comments and superfluous blanks.

    Line breaks remain where code has them, so that a line in an error names a statement.
    """
    sent = list[str]()
    # How many braces are open in the expression of each template that is open.
    open_braces = list[int]()
    at = 0
    while found := TOKEN.match(module, at):
        text, at = found[0], found.end()
        if found["gap"]:
            before, after = module[found.start() - 1 : found.start()], module[at : at + 1]
            text = "\n" if "\n" in text else " " * _needs_blank(before, after)
        elif found["brace"]:
            if text == "`" or (text == "}" and open_braces and open_braces[-1] == 0):
                rest = TEMPLATE_TEXT.match(module, at)
                if rest is None:
                    raise ValueError("a template without an end")
                if text == "}":
                    open_braces.pop()
                if rest[0].endswith("{"):
                    open_braces.append(0)
                text, at = text + rest[0], rest.end()
            elif open_braces:
                open_braces[-1] += 1 if text == "{" else -1
        sent.append(text)
    if at < len(module):
        raise ValueError(f"no token of JavaScript: {module[at : at + 40]!r}")
    return "".join(sent)


def _needs_blank(before: str, after: str) -> bool:
    """Whether two tokens are others without a blank, given by their last and first character."""
    is_repeated = before == after and before in {"+", "-", "/"}
    return is_repeated or all(each.isalnum() or each in {"_", "$"} for each in (before, after))
