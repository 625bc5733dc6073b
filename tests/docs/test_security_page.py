"""Every link on the security pages leads somewhere, and every defense names its proof."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROOF = re.compile(r"\]\((?:\.\./tests/[^)]+\.py|defects\.md)\)")


def defenses() -> dict[str, str]:
    """Return the text of each defense by its heading."""
    page = (ROOT / "docs/security.md").read_text()
    groups = re.split(r"^## ", page, flags=re.MULTILINE)
    sections = [
        section
        for group in groups
        if group.startswith("Defenses")
        for section in re.split(r"^### ", group, flags=re.MULTILINE)[1:]
    ]
    return {section.split("\n", 1)[0]: section for section in sections}


@pytest.mark.parametrize("page", ["docs/security.md", "SECURITY.md"])
def test_every_link_leads_somewhere(page: str) -> None:
    linked = re.findall(r"\]\(([^)#]+)[^)]*\)", (ROOT / page).read_text())
    assert linked
    assert [link for link in linked if not (ROOT / page).parent.joinpath(link).is_file()] == []


def test_every_defense_names_a_test() -> None:
    found = defenses()
    assert len(found) > 20
    assert [heading for heading, text in found.items() if not PROOF.search(text)] == []
