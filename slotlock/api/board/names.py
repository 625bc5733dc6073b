"""Short names for what modules of the board declare inside functions.

What a module declares at its top level keeps its name, so that an error in a browser names a
function. The modules are in the style of the repository: each statement ends with a semicolon, and
neither labels, `var`, `with` nor named function expressions exist.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count, product

NAME = re.compile(r"[A-Za-z_$][\w$]*")
# Words that are no names, or that have another meaning in some places.
KEYWORDS = {
    *("as", "async", "await", "break", "case", "catch", "class", "const", "continue", "default"),
    *("delete", "do", "else", "export", "extends", "false", "finally", "for", "from", "function"),
    *("get", "if", "import", "in", "instanceof", "let", "new", "null", "of", "return", "set"),
    *("static", "super", "switch", "this", "throw", "true", "try", "typeof", "undefined", "void"),
    *("while", "yield"),
}
# Before the brace of a block, which is no object or pattern.
BEFORE_BLOCK = {")", "=>", ";", "{", "}", "else", "try", "catch", "finally", "do"}
BEFORE_CONDITION = {"if", "for", "await", "while", "switch"}
# What a name of a property of a class follows.
BEFORE_FIELD = {"{", ";", "}", "static", "get", "set", "async"}
OPENING, CLOSING = "([{", ")]}"
LETTERS = "etnraoisclduphmfgbvywkxqjzETNRAOISCLDUPHMFGBVYWKXQJZ"


@dataclass(slots=True, eq=False)
class Scope:
    """From its first to its last token, with the number of uses of what it declares."""

    first: int
    last: int
    outer: "Scope | None" = None
    declared: Counter[str] = field(default_factory=Counter)
    # What its tokens use of other scopes and of the browser, by its owner.
    used: set[tuple["Scope | None", str]] = field(default_factory=set)
    short: dict[str, str] = field(default_factory=dict)

    def named(self, name: str) -> str:
        """Return how the name is sent."""
        return self.short.get(name, name)


def with_short_names(tokens: Sequence[str]) -> list[str]:
    """Return the tokens of a module, blanks included, with short names inside functions."""
    return _Module(tokens).renamed()


class _Module:
    def __init__(self, tokens: Sequence[str]) -> None:
        self._all = tokens
        self._at = [index for index, text in enumerate(tokens) if text and not text.isspace()]
        self._code = [tokens[index] for index in self._at] + [""]
        # The other bracket of each bracket, and the opening bracket around each token.
        self._pair: dict[int, int] = {}
        self._around: list[int] = []
        self._properties: set[int] = set()
        self._match_brackets()

    def renamed(self) -> list[str]:
        """Return all tokens with the short names."""
        scopes = self._scopes()
        owners = self._owners(scopes)
        for scope in scopes[1:]:
            taken = {owner.named(name) if owner else name for owner, name in scope.used}
            free = (name for name in _short_names() if name not in taken)
            for name, _ in scope.declared.most_common():
                scope.short[name] = next(free)
        sent = list(self._all)
        for index, owner in owners.items():
            name = self._code[index]
            short = owner.named(name)
            if short != name:
                sent[self._at[index]] = f"{name}:{short}" if self._is_shorthand(index) else short
        return sent

    def _match_brackets(self) -> None:
        open_ = [-1]
        for index, text in enumerate(self._code):
            # A part of a template closes its expression, opens one, or both.
            if text and text[0] in CLOSING:
                start = open_.pop()
                self._pair[index], self._pair[start] = start, index
            self._around.append(open_[-1])
            if text in (*OPENING,) or text.endswith("${"):
                open_.append(index)

    def _scopes(self) -> list[Scope]:
        """Return all scopes, outer ones first, with what they declare."""
        code = self._code
        scopes = self._functions() + [
            Scope(index, self._end_of_statement(self._pair[index] + 1))
            for index, text in enumerate(code)
            if text == "(" and "for" in code[index - 2 : index]
        ]
        bodies = {scope.last for scope in scopes if code[scope.last] == "}"}
        blocks = [index for index, text in enumerate(code) if text == "{"]
        ends = self._pair
        scopes += [Scope(each, ends[each]) for each in blocks if ends[each] not in bodies]
        scopes = [Scope(-1, len(code)), *sorted(scopes, key=lambda each: (each.first, -each.last))]
        for index, scope in self._with_scopes(scopes):
            if code[index] in ("const", "let"):
                scope.declared.update(self._declared(index + 1))
            elif code[index] in ("function", "class") and NAME.fullmatch(code[index + 1]):
                scope.declared[code[index + 1]] += 0
        return scopes

    def _functions(self) -> list[Scope]:
        """Return the scopes of functions and `catch`, with their parameters."""
        found = list[Scope]()
        for index, text in enumerate(self._code):
            if text == "=>":
                is_list = self._code[index - 1] == ")"
                first = self._pair[index - 1] if is_list else index - 1
                found.append(Scope(first, self._end_of_body(index + 1)))
                found[-1].declared.update(self._pattern(first + is_list, index - is_list))
            elif self._is_of_function(index):
                if self._code[index - 2] != "function":
                    self._properties.add(index - 1)  # a method
                end = self._pair[index]
                found.append(Scope(index, self._pair[end + 1]))
                found[-1].declared.update(self._pattern(index + 1, end))
        return found

    def _with_scopes(self, scopes: Sequence[Scope]) -> Iterator[tuple[int, Scope]]:
        """Yield each token with its innermost scope, and note the outer scope of each."""
        inner, following = scopes[0], 1
        for index in range(len(self._code)):
            while inner.last < index and inner.outer is not None:
                inner = inner.outer
            while following < len(scopes) and scopes[following].first == index:
                scopes[following].outer = inner
                inner = scopes[following]
                following += 1
            yield index, inner

    def _is_of_function(self, index: int) -> bool:
        """Whether the parameters of a function, a method or a `catch` begin here."""
        before = self._code[index - 1]
        if self._code[index] != "(" or self._code[self._pair[index] + 1] != "{":
            return False
        return bool(NAME.fullmatch(before)) and before not in BEFORE_CONDITION

    def _end_of_body(self, index: int) -> int:
        """Return the last token of the body of an arrow function."""
        if self._code[index] == "{":
            return self._pair[index]
        questions = 0
        while True:
            text = self._code[index]
            questions += (text == "?") - (text == ":")
            if questions < 0 or text in (",", ";", "") or text[0] in CLOSING:
                return index - 1
            index = self._after(index)

    def _after(self, index: int) -> int:
        """Return the token after this one, or after the bracket or template that begins with it."""
        while self._code[index] in (*OPENING,) or self._code[index].endswith("${"):
            index = self._pair[index]
        return index + 1

    def _end_of_statement(self, index: int) -> int:
        code = self._code
        if code[index] == "{":
            return self._pair[index]
        if code[index] in ("if", "for", "while"):
            end = self._end_of_statement(self._pair[index + 1] + 1)
            return self._end_of_statement(end + 2) if code[end + 1] == "else" else end
        while code[index] != ";":
            index = self._after(index)
        return index

    def _declared(self, index: int) -> Iterator[str]:
        """Yield what a declaration that begins with this token declares."""
        while True:
            after = self._after(index)
            yield from self._pattern(index, after)
            while self._code[after] not in (",", ";", "of", "in", ""):
                after = self._after(after)
            if self._code[after] != ",":
                return
            index = after + 1

    def _pattern(self, index: int, end: int) -> Iterator[str]:
        """Yield the names in parameters, or in a pattern, from a token to another."""
        while index < end:
            following = index
            while following < end and self._code[following] != ",":
                following = self._after(following)
            if self._code[index] == "...":
                index += 1
            if self._code[index + 1] == ":" and index + 1 < following:
                index += 2
            if self._code[index] in ("{", "["):
                yield from self._pattern(index + 1, self._pair[index])
            elif index < following:
                yield self._code[index]
            index = following + 1

    def _owners(self, scopes: Sequence[Scope]) -> dict[int, Scope]:
        """Return the scope that declares each name, by its text, and note what scopes use."""
        owners = dict[int, Scope]()
        for index, inner in self._with_scopes(scopes):
            name = self._code[index]
            if not NAME.fullmatch(name) or name in KEYWORDS or self._is_property(index):
                continue
            owner: Scope | None = inner
            while owner is not None and name not in owner.declared:
                owner = owner.outer
            if owner is not None:
                owners[index] = owner
                owner.declared[name] += 1
            user: Scope | None = inner
            while user is not None and user is not owner:
                user.used.add((owner, name))
                user = user.outer
        return owners

    def _is_property(self, index: int) -> bool:
        """Whether a word is the name of a property, and no variable."""
        before, after = self._code[index - 1], self._code[index + 1]
        if before in (".", "?.") or index in self._properties:
            return True
        around = self._around[index]
        if around < 0 or self._code[around] != "{":
            return False
        if "class" in self._code[max(around - 4, 0) : around]:
            return before in BEFORE_FIELD
        return before in ("{", ",") and after == ":"

    def _is_shorthand(self, index: int) -> bool:
        """Whether a word is a variable and the name of a property: `{ word }`."""
        around = self._around[index]
        if around < 0 or self._code[around] != "{" or self._code[around - 1] in BEFORE_BLOCK:
            return False
        before, after = self._code[index - 1], self._code[index + 1]
        return before in ("{", ",") and after in (",", "}", "=")


def _short_names() -> Iterator[str]:
    for length in count(1):
        for letters in product(LETTERS, repeat=length):
            if (name := "".join(letters)) not in KEYWORDS:
                yield name
