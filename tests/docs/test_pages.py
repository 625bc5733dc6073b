"""The pages of docs/ agree with the code and the schema, and their links resolve."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
from graphql import parse, validate

from conformance.schema import with_refusals
from slotlock.api.app import http_routes
from slotlock.api.calendars import calendar_endpoint
from slotlock.api.settings.settings import Settings
from slotlock.graphql.schema.schema import executable_schema
from slotlock.infrastructure.mongo.repositories import INDEXES
from tests.support.apps.processes import AppProcess

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [
    *sorted(ROOT.glob("*.md")),
    *sorted(ROOT.glob("packages/*/*.md")),
    *sorted(DOCS.rglob("*.md")),
]
GUIDE_PAGES = [page for page in PAGES if "decisions" not in page.parts]


def prose(page: Path) -> str:
    """Return the text of a page without its fenced blocks."""
    return re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)


def first_column(page: Path) -> list[str]:
    """Return the names in backticks that begin the table rows of a page."""
    return re.findall(r"^\| `([^`]+)`", page.read_text(), re.MULTILINE)


def anchors(page: Path) -> Iterator[str]:
    """Yield the anchor of each heading, as GitHub derives it."""
    for heading in re.findall(r"^#+ (.*)$", prose(page), re.MULTILINE):
        plain = re.sub(r"[^\w\- ]", "", heading.strip().lower())
        yield plain.replace(" ", "-")


def test_every_link_leads_to_a_file_and_a_heading() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
            if target.startswith(("http://", "https://")):
                continue
            path, _, anchor = target.partition("#")
            linked = (page.parent / path).resolve() if path else page
            assert linked.exists(), (page, target)
            assert not anchor or anchor in anchors(linked), (page, target)


def test_every_decision_has_a_status_with_a_date_and_is_listed() -> None:
    listed = (DOCS / "decisions" / "README.md").read_text()
    status = re.compile(
        r"^Status: (accepted|replaced by \[.*\]\(.*\)), 2\d{3}-\d\d-\d\d", re.MULTILINE
    )
    pages = sorted((DOCS / "decisions").glob("0*.md"))
    assert len(pages) > 70
    assert [page.name for page in pages if not status.search(page.read_text())] == []
    assert [page.name for page in pages if f"({page.name})" not in listed] == []


def test_every_path_that_contributing_names_exists() -> None:
    named = re.findall(r"`((?:\w+/)+[\w.]+)`", (ROOT / "CONTRIBUTING.md").read_text())
    paths = [path for path in named if not path.startswith(".")]
    assert len(paths) > 30
    beginnings = (ROOT, ROOT / "slotlock")
    assert [path for path in paths if not any((each / path).exists() for each in beginnings)] == []


def test_every_graphql_block_fits_the_schema() -> None:
    for page in GUIDE_PAGES:
        text = page.read_text()
        for block in re.findall(r"^```graphql\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
            assert validate(executable_schema, parse(block)) == [], (page, block)


def test_the_errors_page_has_every_refusal_as_it_is_declared() -> None:
    page = (DOCS / "reference" / "errors.md").read_text()
    assert with_refusals(page) == page, "run `make schema`"


def test_every_message_that_a_page_quotes_is_one_of_the_server() -> None:
    sources = (path.read_text() for path in sorted((ROOT / "slotlock").rglob("*.py")))
    # A long text has several literals, and what it says of a value is in braces.
    texts = re.sub(r'"\s*\n\s*f?"', "", "\n".join(sources))
    quoted = [
        (page, message)
        for page in GUIDE_PAGES
        for message in re.findall(r'"message":\s*"(.+?)"', page.read_text())
    ]
    assert len(quoted) > 10
    for page, message in quoted:
        pattern = re.sub(r"\d+", lambda _: r"(?:\d+|\{\w+\})", re.escape(message))
        assert re.search(pattern, texts), (page, message)


def test_the_metrics_page_lists_every_metric(app: AppProcess) -> None:
    text = httpx.get(f"{app.url}/metrics", trust_env=False, timeout=30).text
    types = re.findall(r"^# TYPE (slotlock_\w+) ", text, re.MULTILINE)
    exported = {name for name in types if not name.endswith("_created")}
    listed = first_column(DOCS / "reference" / "metrics.md")
    assert {name for name in listed if re.fullmatch(r"slotlock_\w+", name)} == exported


def test_the_metrics_page_lists_every_action() -> None:
    found: set[str] = set()
    for folder in ("services/booking", "domain/booking/rules"):
        for file in (ROOT / "slotlock" / folder).glob("*.py"):
            declared = r'(?:name: ClassVar\[str\] = |@booking_rule\()"(\w+)"'
            found.update(re.findall(declared, file.read_text()))
    (actions,) = re.findall(
        r"`action` is (.*?)\.", (DOCS / "reference" / "metrics.md").read_text(), re.DOTALL
    )
    # `slotlock_bookings_total` counts the outcomes of `book`.
    assert set(re.findall(r"`(\w+)`", actions)) == found - {"book"}


def test_the_endpoints_page_lists_every_route_and_calendar() -> None:
    routes = http_routes(Settings(), development=True)
    paths = {route.path for route in routes} - {"/exports/{path:path}", "/calendars/{path:path}"}
    calendars = (
        calendar_endpoint._PRIVATE,
        calendar_endpoint._ORGANIZED,
        calendar_endpoint._RESOURCE,
        calendar_endpoint._CAMPAIGN,
    )
    paths |= {re.sub(r"\(.*?\)", "{}", f"/calendars/{each.pattern}") for each in calendars}
    paths = {re.sub(r"\{.*?\}", "{}", path.replace("\\", "")) for path in paths}
    page = (DOCS / "reference" / "http-endpoints.md").read_text()
    table = "\n".join(re.findall(r"^\| `.*$", page, re.MULTILINE))
    listed = re.findall(r"`(?:[A-Z]+ )?(/[^`]*)`", re.sub(r"\{.*?\}", "{}", table))
    assert paths <= set(listed)


def test_the_example_of_the_doctor_has_the_number_of_indexes() -> None:
    page = (DOCS / "guides" / "operators.md").read_text()
    assert re.findall(r"MongoDB indexes +all (\d+) exist", page) == [str(len(INDEXES))]


def test_the_simulation_page_lists_every_option() -> None:
    printed = subprocess.run(
        [sys.executable, "-m", "slotlock", "simulate", "--help"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    options = set(re.findall(r"^  (?:-h, )?(--[a-z]+)", printed.stdout, re.MULTILINE))
    listed = first_column(DOCS / "guides" / "simulation.md")
    documented = {name.split()[0] for name in listed if name.startswith("--")}
    assert documented == options - {"--help"}
