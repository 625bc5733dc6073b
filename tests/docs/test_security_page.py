"""What the page on security names as proof is there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("page", ["docs/security.md", "SECURITY.md"])
def test_every_link_leads_somewhere(page: str) -> None:
    linked = re.findall(r"\]\(([^)#]+)[^)]*\)", (ROOT / page).read_text())
    assert linked
    assert [link for link in linked if not (ROOT / page).parent.joinpath(link).is_file()] == []


def test_what_is_said_to_be_shown_names_what_shows_it() -> None:
    rows = re.findall(r"^\| .* \|$", (ROOT / "docs/security.md").read_text(), re.MULTILINE)
    shown = [row for row in rows if row.count("|") == 4 and "shown by" not in row]
    assert len(shown) > 20
    assert [row for row in shown if not re.search(r"\]\([^)]+\)[^|]*\|$", row)] == []
