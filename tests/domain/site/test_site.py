"""What a school may set of the site itself, and how it comes before the settings."""

from base64 import b64encode

import pytest

from slotlock.domain.shared.problems import Problem, ProblemCode
from slotlock.domain.shared.validation import InvalidInput
from slotlock.domain.site.logo import Logo, read_logo
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
        ("mail_closing", ["Questions? Ask the office.", "x" * 300], ["x" * 301, "a\nb"]),
    ],
)
def test_each_value_has_its_rule(name: str, valid: list[str], invalid: list[str]) -> None:
    assert {*RULES} == {*SITE_FIELDS.values()} - {"logo_url", "form_of_address"}
    for text in (*valid, ""):
        assert checked_changes({name: f" {text} "}) == {name: text}
    for text in invalid:
        refused = checked_changes({name: text})
        assert isinstance(refused, InvalidInput), text
        [problem] = refused.problems
        assert SITE_FIELDS[problem.field] == name


@pytest.mark.parametrize(
    ("content", "media_type"),
    [
        (b"\x89PNG\r\n\x1a\n" + bytes(9), "image/png"),
        (b"\xff\xd8\xff\xe0", "image/jpeg"),
        (b"RIFF\x1a\x00\x00\x00WEBPVP8 ", "image/webp"),
        (b"RIFF\x1a\x00\x00\x00WAVEfmt ", None),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", None),
        (b"GIF89a", None),
        (b"", None),
    ],
)
def test_a_logo_is_an_image_without_scripts(content: bytes, media_type: str | None) -> None:
    read = read_logo(b64encode(content).decode())
    if media_type is None:
        assert isinstance(read, Problem)
        assert read.code is ProblemCode.NOT_AN_IMAGE
        refused = checked_changes({"color": "red"}, read)
        assert isinstance(refused, InvalidInput)
        assert [each.field for each in refused.problems] == ["color", "logo"]
        return
    assert read == Logo(content, media_type)
    assert checked_changes({}, read) == {"logo_url": f"/board/logo/{read.digest}"}


def test_a_logo_has_at_most_100_kb() -> None:
    image = b"\xff\xd8\xff".ljust(100_000)
    assert isinstance(read_logo(b64encode(image).decode()), Logo)
    for text in (b64encode(image + b"1").decode(), "A" * 10_000_000):
        problem = read_logo(text)
        assert isinstance(problem, Problem)
        assert problem.code is ProblemCode.IMAGE_TOO_LARGE
    no_base64 = read_logo("/9j/*")
    assert isinstance(no_base64, Problem)
    assert no_base64.code is ProblemCode.NOT_AN_IMAGE
