"""The modules of the board as they are sent: few files, without comments and with short names.

A browser loads the modules of members with each page, and those of the folder `views/organizer`
with the first view for organizers. Each is one file, so that a visit needs few requests and the
compression finds what the modules repeat.
"""

import json
import logging
import re
import subprocess
import sys
from collections.abc import Collection, Iterable, Mapping
from importlib.util import find_spec
from posixpath import dirname, join, normpath, relpath

IMPORT = re.compile(r'^import \{([^}]*)\} from "([^"]+)";\n', re.MULTILINE)
EXPORT = re.compile(r"^export (?=(?:async )?(?:class|const|function|let) (\w+))", re.MULTILINE)
# Of a variable, other files see each new value.
VARIABLE = re.compile(r"^export let (\w+).*\n", re.MULTILINE)
# The library moves such a declaration before the constants above it that its object names, unless
# its keyword is another one.
MOVED = re.compile(r"^(\s+)const (?=[{\[][^=\n]*=.*(?:\{|[^;\n]$))", re.MULTILINE)
# In a process of its own, because the library starts a runtime with threads that would remain.
MINIFY = """
import json, sys, minify
files = json.load(sys.stdin.buffer)
types = {"js": "text/javascript", "css": "text/css"}
for name, text in files.items():
    files[name] = minify.string(types[name.rpartition(".")[2]], text)
json.dump(files, sys.stdout)
"""

log = logging.getLogger("slotlock.board")


def merged_modules(
    modules: Mapping[str, str], start: str, alone: Collection[str]
) -> dict[str, str]:
    """Return the modules by the file that contains them.

    A module that is `alone` is in a file with those of the folder of its name, if there is one;
    all others are in the file of the module `start`. A file exports what others import, and what
    the module of its name exports.
    """
    file_of = {name: _file_of(name, start, alone) for name in modules}
    imports = {name: _imports(name, text) for name, text in modules.items()}
    parts: dict[str, list[str]] = {}
    # What each file imports from each other one.
    used: dict[str, dict[str, set[str]]] = {}
    exported = {file: set(EXPORT.findall(modules[file])) for file in file_of.values()}
    for name in _in_order((start, *modules), imports):
        parts.setdefault(file_of[name], []).append(name)
        for other, what in imports[name]:
            if file_of[other] != file_of[name]:
                used.setdefault(file_of[name], {}).setdefault(file_of[other], set()).update(what)
                exported[file_of[other]].update(what)
    return {
        file: "".join(_import(file, other, what) for other, what in used.get(file, {}).items())
        + _in_function("\n".join(IMPORT.sub("", modules[name]) for name in names), exported[file])
        for file, names in parts.items()
    }


def _in_function(code: str, exported: set[str]) -> str:
    """Return the code of a file in a function, where its names can be shortened."""
    if not exported:
        return code
    variables = [each for each in VARIABLE.finditer(code) if each[1] in exported]
    for each in variables:
        code = code.replace(each[0], "")
    names = ", ".join(sorted(exported - {each[1] for each in variables}))
    head = "".join(each[0] for each in variables) + f"export const {{ {names} }} = (() => {{\n"
    return f"{head}{EXPORT.sub('', code)}\nreturn {{ {names} }};\n}})();\n"


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


def minified(files: Mapping[str, str]) -> Mapping[str, str]:
    """Return modules and style sheets, by name, without comments and blanks and with short names.

    They remain as they are where the library is not installed or does not work.
    """
    if find_spec("minify") is None:
        return files
    texts = json.dumps({name: MOVED.sub(r"\1let ", text) for name, text in files.items()}).encode()
    try:
        done = subprocess.run(  # noqa: S603 - a constant program
            [sys.executable, "-c", MINIFY], input=texts, stdout=subprocess.PIPE, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        log.exception("the files of the board are not minified")
        return files
    result: dict[str, str] = json.loads(done.stdout)
    return result
