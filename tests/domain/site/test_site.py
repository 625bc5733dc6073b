"""What a school may set of the site itself, and how it comes before the settings."""

import pytest

from slotlock.domain.shared.validation import InvalidInput
from slotlock.domain.site.site import RULES, SITE_FIELDS, SiteValues, checked_changes

SETTINGS = SiteValues("School", "#112233", "/logo.png", locale="de", time_zone="UTC")


def test_what_the_school_set_comes_before_the_settings() -> None:
    own = SiteValues(name="Park School", imprint_url="https://park.example/imprint")
    assert own.over(SETTINGS) == SiteValues(
        "Park School", "#112233", "/logo.png", own.imprint_url, "", "de", "UTC"
    )
    assert SiteValues().over(SETTINGS) == SETTINGS


@pytest.mark.parametrize(
    ("name", "valid", "invalid"),
    [
        ("name", ["Park School", "x" * 100], ["x" * 101, "\u3164", "Park\nSchool"]),
        ("color", ["#2a3bb7", "#FFFFFF"], ["blue", "#fff", "#2a3bb7;", "2a3bb7"]),
        ("imprint_url", ["https://park.example/i?a=1"], ["http://park.example", "javascript:x"]),
        ("privacy_url", ["https://park.example"], ["https://", "https://a@park.example"]),
        ("locale", ["en", "de-AT", "zh-Hant"], ["fr", "german", "de_AT"]),
        ("time_zone", ["Europe/Berlin", "UTC"], ["Berlin", "localtime"]),
    ],
)
def test_each_value_has_its_rule(name: str, valid: list[str], invalid: list[str]) -> None:
    assert {*RULES} == {*SITE_FIELDS.values()} - {"logo_url"}
    for text in (*valid, ""):
        assert checked_changes({name: f" {text} "}) == {name: text}
    for text in invalid:
        refused = checked_changes({name: text})
        assert isinstance(refused, InvalidInput), text
        [problem] = refused.problems
        assert SITE_FIELDS[problem.field] == name
