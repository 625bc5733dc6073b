"""What the board needs is there, and nothing else: operations, texts, modules, sizes."""

import json
import re
from collections import defaultdict
from graphlib import TopologicalSorter

import pytest
from graphql import GraphQLEnumType, validate

from bench.board.sizes import FIRST_FILES, file_sizes, member_modules
from slotlock.api.board.documents import BOARD_DIR
from slotlock.api.board.files import ALONE, FOR_ORGANIZERS, START, board_files, is_module
from slotlock.api.board.modules import merged_modules
from slotlock.domain.booking.booking import BookingAction, BookingLimit
from slotlock.domain.notifications.outbox import UNDELIVERABLE
from slotlock.domain.shared.problems import ProblemCode
from slotlock.domain.shared.tables.file_problems import TableProblem
from slotlock.domain.slot_files.problems import SlotFileProblem
from slotlock.domain.user_files.problems import ImportProblem
from slotlock.domain.user_files.user_file import UserFile, parse_user_file
from slotlock.domain.users.user import MailTopic
from slotlock.graphql.core.errors import ErrorCode
from slotlock.graphql.limits.complexity import exceeded_limit
from slotlock.graphql.schema.schema import executable_schema
from slotlock.services.notifications.booking_mails import OVER, OVERTAKEN
from tests.support.board.sources import (
    CODES,
    LANGUAGES,
    MODULES,
    OPERATIONS,
    field_texts,
    first_arguments,
    form_texts,
    path_of,
    placeholders,
    refusals,
    sent_modules,
    string_literals,
    template_beginnings,
    text_keys,
)

MAX_KERNEL_LINES = 300
MAX_LINE_LENGTH = 160
# A text or a regular expression that nothing can break.
ONE_TEXT = re.compile(r"""\s*(?:const )?\w+(?: =|:) (?:"[^"]*"|/.*/u?)[,;]""")
# By Brotli: of a first visit with its texts, of the views for members, and of all views.
MAX_FIRST_BYTES, MAX_MEMBERS_BYTES, MAX_MODULES_BYTES = 51_000, 48_500, 110_000
MAX_FIRST_BYTES_BY_GZIP = 60_000
# The categories of CLDR for whole numbers: of counts, and of places in a line.
PLURAL_FORMS = {"en": {"one", "other"}, "de": {"one", "other"}, "zh": {"other"}}
ORDINAL_FORMS = {"en": {"one", "two", "few", "other"}, "de": {"other"}, "zh": {"other"}}
LATER = re.compile(r'"(\./[\w./]+\.js)"|`\./(?:views/organizer/)?messages/.*`')
# What modules import when they start, later, or as types.
IMPORTED = re.compile(r"""\b(?:from |import\()"(\.[\w./]+\.js)\"""")
# What modules use of the browser.
BROWSER_NAMES = {
    *("addEventListener", "btoa", "caches", "clearInterval", "clearTimeout", "console", "crypto"),
    *("document", "fetch", "history", "localStorage", "location", "navigator", "parseInt"),
    *("performance", "removeEventListener", "requestAnimationFrame", "scrollBy", "scrollTo"),
    *("self", "sessionStorage", "setInterval", "setTimeout"),
}
CAPITALS = re.compile(r'"([A-Z][A-Z\d]*(?:_[A-Z\d]+)*)"')
COMMENTS = re.compile(r"/\*.*?\*/|^\s*//[^\n]*", re.DOTALL | re.MULTILINE)
# Words in capitals that the schema does not know: the codes of requests without data, and others.
REQUEST_CODES = {*map(str, ErrorCode), "OFFLINE", "OVERLOADED", "OTHER_USER", "BROKEN"}
OTHER_CAPITALS = {"GET", "POST", "UTC", "GMT", "Y", "Z", "ONE"}
DECLARATION = r"^(?:export )?(?:async )?(?:function|const|let|class) (\w+)"
FORBIDDEN = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|createContextualFragment|text/html|document\.write"
    r"""|\beval\(|new Function|\bstyle: ["'`]|setAttribute\("style"""
)


@pytest.mark.parametrize("name", OPERATIONS)
def test_every_operation_fits_the_schema_and_its_limits(name: str) -> None:
    assert [error.message for error in validate(executable_schema, OPERATIONS[name])] == []
    assert exceeded_limit(executable_schema, OPERATIONS[name]) is None


def test_every_operation_is_used_and_every_used_one_exists() -> None:
    assert set(OPERATIONS) - string_literals() == set()
    names = {
        argument.strip('"')
        for _, argument in first_arguments("run", "resultOf", "post", "readAll", "subscribe")
        if argument.startswith('"')
    }
    assert names - set(OPERATIONS) == set()


def test_every_text_that_a_module_shows_exists() -> None:
    unknown = {key: module for key, module in text_keys().items() if key not in LANGUAGES["en"]}
    assert unknown == {}
    assert field_texts() - set(LANGUAGES["en"]) == set()
    for beginning in template_beginnings():
        assert any(key.startswith(beginning) for key in LANGUAGES["en"]), beginning


def test_every_text_is_shown_somewhere() -> None:
    literals, beginnings = string_literals() | form_texts(), template_beginnings()
    unused = {
        key for key in LANGUAGES["en"] if key not in literals and not key.startswith(beginnings)
    }
    assert unused == set()


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_language_has_every_text_with_its_variables(language: str) -> None:
    texts, english = LANGUAGES[language], LANGUAGES["en"]
    ordinals = {f"ordinal.{form}" for form in ORDINAL_FORMS[language]}
    others = {key for key in english if not key.startswith("ordinal.")}
    assert set(texts) == others | ordinals
    for key, text in texts.items():
        assert placeholders(text) == placeholders(english[key]), key
        forms = (
            {each for each in text if not each.isdigit()} if isinstance(text, dict) else {"other"}
        )
        has_forms = isinstance(english[key], dict)
        assert forms == (PLURAL_FORMS[language] if has_forms else {"other"}), key


def test_every_value_that_a_module_compares_with_exists_in_the_schema() -> None:
    types = executable_schema.type_map
    enums = [each for each in types.values() if isinstance(each, GraphQLEnumType)]
    known = {value for each in enums for value in each.values}
    known |= {*CODES.values(), *ImportProblem} | REQUEST_CODES | OTHER_CAPITALS
    for name, text in MODULES.items():
        code = COMMENTS.sub("", text)
        assert {each for each in CAPITALS.findall(code) if each not in known} == set(), name
        named = re.findall(r'__typename [!=]== "(\w+)"|case "(\w+)":', code)
        assert {each for pair in named for each in pair if each} - set(types) == set(), name


@pytest.mark.parametrize("name", OPERATIONS)
def test_every_refusal_has_a_text_and_the_fields_that_it_names(name: str) -> None:
    texts = LANGUAGES["en"]
    for code, fields in refusals(OPERATIONS[name]).items():
        text = texts.get(f"refusal.{code}")
        assert text is not None, code
        assert placeholders(text) - fields - {"site"} == set(), code


def test_every_refused_booking_of_a_member_names_the_one_at_the_same_time() -> None:
    selected = {name: refusals(document) for name, document in OPERATIONS.items()}
    named = {
        name: found["TIME_CONFLICT"] for name, found in selected.items() if "TIME_CONFLICT" in found
    }
    for name, fields in named.items():
        assert {"otherMeeting", "otherBooking"} <= fields, name


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_problem_of_a_field_has_a_text_that_names_only_its_values(language: str) -> None:
    for code in ProblemCode:
        text = LANGUAGES[language].get(f"problem.{code.name}")
        assert text is not None, code
        assert placeholders(text) - placeholders(code.value) - {"site"} == set(), code


@pytest.mark.parametrize("language", LANGUAGES)
def test_each_action_on_a_booking_and_each_overridden_limit_has_a_text(language: str) -> None:
    actions = {f"history.{action.name}" for action in BookingAction}
    passed = {f"passed.{limit.refusal_code}" for limit in BookingLimit if limit.refusal_code}
    assert (actions | passed) - LANGUAGES[language].keys() == set()


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_reason_of_slotlock_why_a_mail_is_not_sent_has_a_text(language: str) -> None:
    sources = [
        path.read_text() for path in (BOARD_DIR.parent / "services/notifications").glob("*.py")
    ]
    given = re.findall(r'SUPPRESSED, f?"([^"]+)"', "".join(sources))
    refusals = {f"the user refuses {topic.value}" for topic in MailTopic}
    reasons = {UNDELIVERABLE, OVER, OVERTAKEN, *refusals, *given} - {
        "the user refuses {topic.value}",
        *("the webhook was deleted", "the webhook is disabled"),
    }
    assert len(reasons) == 10
    assert {f"mail.note.{each}" for each in reasons} - LANGUAGES[language].keys() == set()


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_sample_of_a_file_is_one_that_an_import_reads(language: str) -> None:
    sample = LANGUAGES[language]["people.importSample"]
    read = parse_user_file(str(sample).encode())
    assert isinstance(read, UserFile)


def test_every_operation_reads_what_the_text_of_a_problem_needs() -> None:
    found = 0
    for path in (BOARD_DIR / "operations").rglob("*.graphql"):
        for fields in re.findall(r"(?:fields|problems) \{([^}]*)", path.read_text()):
            assert "code values { name value" in fields, path.name
            found += 1
    assert found > 0


def test_modules_import_only_modules_of_the_board() -> None:
    served = set(board_files())
    for name, text in MODULES.items():
        imported = re.findall(r'(?:^import|^export|^\} ).*?from "([^"]+)"', text, re.MULTILINE)
        assert imported == re.findall(r'\bfrom "([^"]+)"', text)
        assert {path_of(name, each) for each in imported} - served == set(), name
        later = re.findall(r"\bimport\(([^)]*)\)", text)
        assert all(
            re.fullmatch(r'"(\./[\w./]+\.js)"|`\./(?:views/organizer/)?messages/.*`', each)
            for each in later
        )


def test_no_module_imports_one_of_a_layer_above_it() -> None:
    imported = {
        name: {path_of(name, each) for each in IMPORTED.findall(text)} - {name}
        for name, text in MODULES.items()
    }
    above = {
        (name, other)
        for name, others in imported.items()
        for other in others
        if _layer(other) > _layer(name)
    }
    assert above == set()


def test_no_sibling_files_or_folders_import_each_other_in_a_circle() -> None:
    siblings: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for name, text in MODULES.items():
        for other in {path_of(name, each) for each in IMPORTED.findall(text)} - {name}:
            parts, others = name.split("/"), other.split("/")
            depth = next(depth for depth, each in enumerate(parts) if each != others[depth])
            siblings["/".join(parts[:depth])][parts[depth]].add(others[depth])
    for imported in siblings.values():
        TopologicalSorter(imported).prepare()  # raises an error that names a circle


def _layer(name: str) -> int:
    """Return the layer of a module: what all use, views, those for organizers, and the start."""
    if name == START:
        return 3
    return name.startswith("views/") + name.startswith(FOR_ORGANIZERS)


@pytest.mark.parametrize("name", MODULES)
def test_no_module_writes_markup_or_runs_text_as_code(name: str) -> None:
    assert FORBIDDEN.findall(MODULES[name]) == []


def test_a_file_of_modules_has_each_of_them_once_after_what_it_imports() -> None:
    modules = {
        "app.js": 'import { b } from "./b.js";\nimport { open } from "./views/x.js";\nopen(b);\n',
        "b.js": "export const b = 1;\n",
        "reload.js": "export {};\n",
        "views/x.js": 'import { b } from "../b.js";\nexport const open = b;\n',
        "views/organizer.js": 'import { y } from "./organizer/y.js";\nexport const z = y;\n',
        "views/organizer/y.js": 'import { part } from "./y/part.js";\nexport const y = part;\n',
        "views/organizer/y/part.js": 'import {\n  b,\n} from "../../../b.js";\n'
        "export const part = b;\n",
    }
    assert merged_modules(modules, "app.js", alone=["reload.js", "views/organizer.js"]) == {
        "app.js": "export const b = 1;\n\nconst open = b;\n\nopen(b);\n",
        "reload.js": "export {};\n",
        "views/organizer.js": 'import { b } from "../app.js";\n'
        "const part = b;\n\nconst y = part;\n\nexport const z = y;\n",
    }


def test_no_name_is_declared_twice_in_a_file_or_hides_one_of_the_browser() -> None:
    for file, text in merged_modules(sent_modules(), START, alone=ALONE).items():
        names = re.findall(DECLARATION, text, re.MULTILINE)
        for imported in re.findall(r"^import \{([^}]*)\}", text, re.MULTILINE):
            names += re.findall(r"\w+", imported)
        assert len(names) == len(set(names)), file
        assert BROWSER_NAMES & set(names) == set(), file


@pytest.mark.parametrize("name", MODULES)
def test_no_line_of_a_module_is_too_long(name: str) -> None:
    lines = (line for line in MODULES[name].splitlines() if len(line) > MAX_LINE_LENGTH)
    assert [line for line in lines if not ONE_TEXT.fullmatch(line)] == []


def test_the_page_has_no_inline_code() -> None:
    page = (BOARD_DIR / "board.html").read_text()
    assert re.findall(r"<style|\sstyle=|\son\w+=|<script(?! type=\"module\" src=)", page) == []


def test_the_kernel_a_first_visit_and_the_modules_for_members_stay_small() -> None:
    assert len(MODULES["kernel.js"].splitlines()) <= MAX_KERNEL_LINES
    sizes = file_sizes()
    for names, most in (
        (FIRST_FILES, MAX_FIRST_BYTES),
        (member_modules(sizes), MAX_MEMBERS_BYTES),
        (filter(is_module, sizes), MAX_MODULES_BYTES),
    ):
        assert sum(sizes[name][0] for name in names) < most
    assert sum(sizes[name][1] for name in FIRST_FILES) < MAX_FIRST_BYTES_BY_GZIP


def test_no_file_of_texts_has_a_key_twice() -> None:
    for language in LANGUAGES:
        text = (BOARD_DIR / "messages" / f"{language}.json").read_text()
        pairs = json.loads(text, object_pairs_hook=lambda pairs: [key for key, _ in pairs])
        assert len(pairs) == len(set(pairs)), language


def test_every_problem_of_an_imported_file_has_a_text_with_its_values() -> None:
    values = {"TOO_MANY_USERS": {"maximum"}, "WRONG_CELL_COUNT": {"cells", "expected"}}
    values |= {"INVALID_NAME": {"maximum"}, "INVALID_GROUPS": {"maximum", "length"}}
    values |= {"INVALID_PHONE": {"maximum"}}
    values |= {"SAME_USER": {"line"}, "SAME_RESOURCE": {"line"}, "TOO_MANY_GUARDIANS": {"maximum"}}
    values |= {"TOO_MANY_DEPENDENTS": {"guardian", "maximum"}, "UNKNOWN_GUARDIAN": {"guardian"}}
    values |= {"SELF_REGISTERED_GUARDIAN": {"guardian"}, "GUARDIAN_IS_DEPENDENT": {"guardian"}}
    values |= {"BANNED_GUARDIAN": {"guardian"}}
    expected: dict[str, set[str]] = {
        code: values.get(code, set()) for code in (*TableProblem, *ImportProblem)
    }
    expected |= {each.name: placeholders(each.value) for each in SlotFileProblem}
    expected["NO_NUMBER_COLUMN"] = set()
    texts = {key: text for key, text in LANGUAGES["en"].items() if key.startswith("import.")}
    assert {key: placeholders(text) for key, text in texts.items()} == {
        f"import.{code}": names for code, names in expected.items()
    }
