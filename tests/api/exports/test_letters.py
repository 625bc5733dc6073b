"""Letters of invitations: what a pupil reads on paper, and which file makes none."""

import secrets
from datetime import UTC, datetime
from io import BytesIO

import httpx
import pytest
from pypdf import PdfReader

from slotlock.api.exports.letters import MAX_LETTERS, Letter, letters_pdf, read_invitations
from tests.support.clients.booking_client import BookingClient
from tests.support.clients.user_files import import_users

PAGE = "https://slots.example/board#/code/"
HEADER = "email,name,token,expires_at,username,groups\n"
LINE = "ada@x.org,Ada,7KQ4-M9XT-2HFW,2026-12-13T06:28:08.005Z,,5a\n"
UPDATE_ME = "mutation($locale: String) { updateMe(locale: $locale) { __typename } }"


def page_texts(body: bytes) -> list[str]:
    """Return the text of each page of a PDF."""
    return [page.extract_text() for page in PdfReader(BytesIO(body)).pages]


def letters(*names_and_groups: tuple[str, str]) -> list[Letter]:
    """Return letters for these users, whose codes are valid until the morning of 13 December."""
    last_day = datetime(2026, 12, 12, 6, 28, tzinfo=UTC)
    return [
        Letter(name, f"{name.lower()}.5a", group, "7KQ4-M9XT-2HFW", last_day)
        for name, group in names_and_groups
    ]


def printed(of: list[Letter], language: str = "de", site: str = "Schule am Park") -> list[str]:
    """Return the text of each page of letters."""
    pdf, _ = letters_pdf(of, language=language, site=site, page=PAGE, time_zone="Europe/Berlin")
    return page_texts(pdf)


def test_a_letter_says_in_words_how_a_pupil_without_an_address_gets_in() -> None:
    [text] = printed(letters(("Ada", "5a")))
    for expected in (
        "Konto bei Schule am Park",
        "Ada",
        "5a",
        "slots.example/board#/code",
        "7KQ4-M9XT-2HFW",
        "ada.5a",
        "Gültig bis Samstag, 12. Dezember 2026.",  # the last whole day
    ):
        assert expected in text
    assert len(PdfReader(BytesIO(pdf_of("Ada"))).pages[0].images) == 1  # the QR code


def pdf_of(name: str) -> bytes:
    """Return the letter of a user."""
    shared = {"language": "en", "site": "School", "page": PAGE, "time_zone": "UTC"}
    return letters_pdf(letters((name, "5a")), **shared)[0]


@pytest.mark.parametrize(
    ("language", "until"),
    [("en", "Valid until Saturday, December 12, 2026."), ("zh", "有效期至2026年12月12日星期六。")],
)
def test_a_letter_is_in_the_language_of_the_site(language: str, until: str) -> None:
    [text] = printed(letters(("Ada", "5a")), language)
    assert until in "".join(text.split()) if language == "zh" else until in text


def test_each_class_begins_on_a_page_of_its_own_with_four_letters_on_each() -> None:
    of_10a = [(f"Ida{number}", "10a") for number in range(5)]
    texts = printed(letters(*of_10a, ("Zoe", "5a"), ("Ben", "5a"), ("Nora", "")))
    assert [text.count("Gültig bis") for text in texts] == [1, 2, 4, 1]
    assert texts[1].index("Ben") < texts[1].index("Zoe")
    assert "Ida0" in texts[2]


def test_the_letters_of_a_class_are_in_the_order_of_pinyin() -> None:
    in_order = ["Zoe", "陈静", "王伟"]
    found = sorted(letters(*((name, "5a") for name in reversed(in_order))), key=lambda it: it.order)
    assert [each.name for each in found] == in_order


def test_what_users_wrote_is_no_markup_and_long_names_lose_nothing() -> None:
    name, login_name = "*Ada* #page[x]" + " Wolfe" * 12, "a" * 70 + "@" + "b" * 60 + ".example"
    last_day = datetime(2026, 12, 12, tzinfo=UTC)
    [text] = printed([Letter(name, login_name, "5a", "7KQ4-M9XT-2HFW", last_day)])
    joined = "".join(text.split()).replace("\u200b", "")
    assert "".join(name.split()) in joined
    assert login_name in joined
    assert max(map(len, text.splitlines())) < 100  # it ends where the picture begins


def test_a_letter_with_long_names_is_higher_than_others() -> None:
    name, login_name = "Wolfeschlegel " * 7, "a" * 180 + "@" + "b" * 60 + ".example"
    last_day = datetime(2026, 12, 12, tzinfo=UTC)
    of_four = [Letter(name, login_name, "5a", "7KQ4-M9XT-2HFW", last_day)] * 4
    assert [text.count("Gültig bis") for text in printed(of_four)] == [3, 1]


def test_the_last_day_is_the_last_on_which_the_code_is_valid_all_day() -> None:
    [letter] = read_invitations(f"{HEADER}{LINE}".encode())
    assert letter.last_day == datetime(2026, 12, 12, 6, 28, 8, 5000, tzinfo=UTC)


def test_the_class_of_a_user_is_the_group_that_begins_with_a_digit() -> None:
    body = f'{HEADER}{LINE[:-3]}"AG Schach, 7b, Chor"\n{LINE[:-3]}"Chor, AG"\n'
    assert [each.group for each in read_invitations(body.encode())] == ["7b", "Chor"]


async def test_an_organizer_prints_what_was_created(
    organizer: BookingClient, http: httpx.AsyncClient
) -> None:
    group = f"5a {secrets.token_hex(6)}"
    users = f"username;name;groups\nada.{group[3:]};=Ada;{group}\nben.{group[3:]};Ben;{group}"
    await import_users(organizer, users.encode())
    await organizer.execute(UPDATE_ME, locale="de")

    async def post(path: str, body: bytes = b"", **query: str) -> httpx.Response:
        headers = {**organizer.headers, "Content-Type": "text/csv"}
        return await http.post(organizer.url + path, content=body, params=query, headers=headers)

    created = await post("/users/invitations", group=group, separator="semicolon")
    for _ in range(2):  # nothing ends the codes
        response = await post("/users/letters", created.content, page=PAGE)
        assert (response.status_code, response.headers["content-type"]) == (200, "application/pdf")
        [text] = page_texts(response.content)
        assert "=Ada" in text
        assert "'=Ada" not in text
        assert "Konto bei" in text
        for line in created.text.splitlines()[1:]:
            assert line.split(";")[2] in text
    mailed = created.text.splitlines()[0] + f"\nada@x.org;Ada;;2026-12-13T06:28:08Z;;{group}"
    for body, query, status, code in (
        (created.content, {"page": "javascript:x"}, 400, "BAD_USER_INPUT"),
        (b"", {}, 422, "INVALID_FILE"),
        (b"\xff\xfe", {}, 422, "INVALID_FILE"),
        (mailed.encode(), {}, 422, "INVALID_FILE"),
        (f"{HEADER}{LINE}".replace("06:28", "99:99").encode(), {}, 422, "INVALID_FILE"),
        (f"{HEADER}{LINE}".replace("7KQ4", "7 Q4").encode(), {}, 422, "INVALID_FILE"),
        ((HEADER + LINE * (MAX_LETTERS + 1)).encode(), {}, 413, "LIMIT_EXCEEDED"),
    ):
        refused = await post("/users/letters", body, **{"page": PAGE, **query})
        assert (refused.status_code, refused.json()["code"]) == (status, code)
