"""The modules of the board as they are sent: few files, without comments and blanks of layout.

A browser loads the modules of members with each page, the account, the wishes and draws when they
are opened, teams for users who are in one, and those of the folder `views/organizer` with the first
view for organizers. Each of these is one file, so that a visit needs few requests and the
compression finds what the modules repeat.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from posixpath import dirname, join, normpath, relpath

IMPORT = re.compile(r'^import \{([^}]*)\} from "([^"]+)";\n', re.MULTILINE)
EXPORT = re.compile(r"^export (?=(?:(?:async )?function|const|let|class) (\w+))", re.MULTILINE)

# What begins a line before its statement, types within a line, and comments that end one.
COMMENTS_AND_BLANKS = re.compile(
    r"^(?:\s+|//.*|/\*\*(?s:.*?)\*/)+|/\*\*(?s:.*?)\*/ ?| // .*", re.MULTILINE
)
# Ends of lines that mean nothing: no statement ends there, or it ends without them, too.
LINE_ENDS = re.compile(r"(?<=[(\[{,;])\n|\n(?=[)\]}.?:])")
# Blanks around signs that no text of the board has with blanks: a test compares the tokens.
BLANKS = re.compile(r" (?:=>|[=!]==|&&|\|\||\?\?|[=+*?:]) |(?<=\{) | (?=\})")


def stripped(module: str) -> str:
    """Return a module without comments, indentation, most ends of lines, and blanks around signs.

    It takes no sign from a text or a regular expression of the board: a test compares the tokens.
    """
    lines = LINE_ENDS.sub("", COMMENTS_AND_BLANKS.sub("", module))
    return BLANKS.sub(lambda found: found[0].strip(), lines)


def merged_modules(
    modules: Mapping[str, str], start: str, alone: Collection[str]
) -> dict[str, str]:
    """Return the modules by the file that contains them.

    A module that is `alone` is in a file with those of the folder of its name, if there is one;
    all others are in the file of the module `start`. A file exports what its own module does, and
    what other files use.
    """
    file_of = {name: _file_of(name, start, alone) for name in modules}
    imports = {name: _imports(name, text) for name, text in modules.items()}
    parts: dict[str, list[str]] = {}
    for name in _in_order((start, *modules), imports):
        parts.setdefault(file_of[name], []).append(name)
    used: dict[str, dict[str, set[str]]] = {file: {} for file in parts}
    for name, found in imports.items():
        for other, what in found:
            if file_of[other] != file_of[name]:
                used[file_of[name]].setdefault(file_of[other], set()).update(what)
    exported = set[str]().union(*(what for each in used.values() for what in each.values()))
    merged = dict[str, str]()
    for file, names in parts.items():
        lines = [_import(file, other, what) for other, what in used[file].items()]
        texts = (_part(modules[each], None if each == file else exported) for each in names)
        merged[file] = "".join(lines) + "\n".join(texts)
    return merged


def _part(module: str, exported: Collection[str] | None) -> str:
    """Return a module without imports, and with no exports but these, or with all of them."""
    text = IMPORT.sub("", module)
    if exported is None:
        return text
    return EXPORT.sub(lambda found: found[0] if found[1] in exported else "", text)


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
