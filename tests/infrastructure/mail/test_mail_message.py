"""Whatever text stands in a mail, two parsers read that text, and the same headers and parts."""

import re
import unicodedata
from datetime import UTC, datetime
from email.header import decode_header

import pytest
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st

from slotlock.infrastructure.mail.addresses import MailSender, parse_sender, parse_smtp_url
from slotlock.infrastructure.mail.mail_headers import write_text
from slotlock.infrastructure.mail.mail_message import CalendarInvitation, build_message
from slotlock.infrastructure.mail.mail_texts import MailText
from tests.support.notifications.mail_readers import READERS, read_in_python, read_in_rust

NOW = datetime(2030, 1, 31, 14, tzinfo=UTC)
URL = f"https://school.test/unsubscribe/{'a' * 200}"
TO = "a@school.test"
# "A", and then a header, an empty line and a link.
HTML_IN_BASE64 = "=?utf-8?b?QQ0KQ29udGVudC1UeXBlOnRleHQvaHRtbA0KDQo8YSBocmVmPS8vZS5leD5QYXk8L2E+?="
LONG_NAME = 'Ada "Win" <eve@evil.test>, Eve of the long name that nobody reads, eve@evil.test'
LONG_TITLE = "Elternabend \u2013 " * 9 + "Ende"
# What parsers look for, what they count, and what has no form in UTF-8.
PIECES = (
    *("=?", "?=", "=?utf-8?q?=0D=0ABcc:_eve@evil.test?=", HTML_IN_BASE64, "=?utf-8?q?x?=", "_"),
    *("\r\n", "\n", "\r", "\r\nBcc: eve@evil.test", "\r\n\r\n<a>", "\x00", "\t", "\x7f", "\x85"),
    *('"', "\\", "<", ">", "<eve@evil.test>", ",", ";", ":", "(", ")", "@", "[", "'", "%", "=3D"),
    *(" ", "  ", "Elternabend \u2013 ", "Müller, ", "x" * 80, "ä" * 40, "界" * 30, "e\u0301\u0323"),
    *(
        "\U0001f469\u200d\U0001f469\u200d\U0001f467" * 9,
        "🇩🇪",
        "שלום עולם",
        "\u202e",
        "\u2028",
        "\u2029",
        "\u200b",
        "\ufeff",
    ),
    *("\ud800", "\udfff", "\uffff", "\U0010ffff"),
)
TEXTS = st.lists(st.sampled_from(PIECES) | st.text(max_size=9), max_size=12).map("".join)

# The texts have many pieces: to find the shortest ones that fail would take minutes.
UNSHRUNK = (Phase.explicit, Phase.generate)


def shown(text: str) -> str:
    """Return a text as a header holds it."""
    categories = {"Cc": " ", "Zl": " ", "Zp": " ", "Cs": "\ufffd"}
    characters = text.replace("\r\n", " ")
    return "".join(categories.get(unicodedata.category(each), each) for each in characters)


def write(name: str = "Ada", subject: str = "Hello", site: str = "School", to: str = TO) -> bytes:
    """Return a mail with an invitation."""
    sender = MailSender(site, "noreply@school.test", (site, "office@school.test"))
    content = MailText(subject, f"{name}\n{subject}\n", f"<p>{name}</p>")
    invitation = CalendarInvitation("REQUEST", b"BEGIN:VCALENDAR")
    headers = {"List-Unsubscribe": f"<{URL}>"}
    return build_message("id", sender, (name, to), content, NOW, [invitation], headers)


@settings(phases=UNSHRUNK)
@given(st.lists(st.tuples(TEXTS, TEXTS, TEXTS), min_size=6, max_size=6))
@example([(LONG_NAME, LONG_TITLE, "Schule, Nord")])
@example([(HTML_IN_BASE64, HTML_IN_BASE64, HTML_IN_BASE64)])
@example([(f"{'Miller, ' * 9}Ada", "word " * 40 + "end", 'a" <x@y.test>,')])
def test_both_parsers_read_every_text_and_only_the_headers_of_every_mail(
    texts: list[tuple[str, str, str]],
) -> None:
    plain = {read: read(write()) for read in READERS}
    for name, subject, site in texts:
        source = write(name, subject, site)
        for read in READERS:
            found = read(source)
            assert found.headers == plain[read].headers
            assert found.parts == plain[read].parts
            assert found.subject == shown(subject)
            assert found.mailboxes == {
                "From": [(shown(site).strip(), "noreply@school.test")],
                "Reply-To": [(shown(site).strip(), "office@school.test")],
                "To": [(shown(name).strip(), TO)],
            }


@settings(phases=UNSHRUNK)
@given(TEXTS)
def test_lines_and_encoded_words_are_as_long_as_they_may_be_and_break_no_character(
    text: str,
) -> None:
    source = write(text, text, text)
    header = source.partition(b"\r\n\r\n")[0].decode("ascii")
    lines = [line for line in header.split("\r\n") if not line.startswith("List-Unsubscribe: <")]
    assert max(map(len, lines)) <= 78
    assert max(map(len, source.split(b"\r\n"))) <= 998
    assert not any(line.isspace() or "\n" in line or "\r" in line for line in lines)
    for word in re.findall(r"(?<!\S)=\?utf-8\?[qb]\?\S*\?=(?!\S)", header):
        assert len(word) <= 75
        [(encoded, _)] = decode_header(word)
        assert encoded.decode() in shown(text)


def test_names_and_subjects_that_need_no_encoding_have_none() -> None:
    source = write("Dr. Ada (8a), King", "You have a place: Chess", "School").decode()
    assert 'To: "Dr. Ada (8a), King" <a@school.test>\r\n' in source
    assert "Subject: You have a place: Chess\r\n" in source
    assert "From: School <noreply@school.test>\r\n" in source


def test_a_header_of_the_program_is_one_line_of_ascii() -> None:
    assert f"\r\nList-Unsubscribe: <{URL}>\r\n".encode() in write()
    content = MailText("Hello", "text", "<p>text</p>")
    for value in ("a\r\nBcc: eve@evil.test", "a\nb", "ä", "\x00", "a" * 1_000):
        headers = {"List-Unsubscribe": value}
        with pytest.raises(ValueError, match="is no value of List-Unsubscribe"):
            build_message("id", SENDER, ("A", TO), content, NOW, headers=headers)


def test_programs_that_reply_to_everything_are_asked_not_to() -> None:
    for line in (b"Auto-Submitted: auto-generated", b"X-Auto-Response-Suppress: All"):
        assert b"\r\n%b\r\n" % line in write()


SENDER = MailSender("School", "noreply@school.test")


@pytest.mark.parametrize(
    "address",
    [
        *("a@school.test\r\nBcc: b@x.test", "a@school.test\nX: y", "Name\r\nBcc: b@x.test"),
        *("ü\r\nBcc: b@x.test@school.test", "a,b@school.test", "a@school.test>, <b@x.test"),
        *("ü> <b@x.test", "a@i❤.test", "a@b..test", "a\u2028@school.test", "a\ud800@school.test"),
        *("ü\u00a0b@school.test", '"a"b"@school.test', "a@school.test (b)", "", "@", "a@-ü.test"),
    ],
)
def test_no_header_holds_what_is_no_address(address: str) -> None:
    with pytest.raises(ValueError, match=r"is not an email address|is not a domain"):
        write(to=address)


@pytest.mark.parametrize(
    ("address", "written"),
    [
        # IDNA 2003 makes strasse.test of the first, and xn--hxakic4aa.test of the second.
        ("s@straße.test", "s@xn--strae-oqa.test"),
        ("s@ελλάς.test", "s@xn--hxarsa0b.test"),
        ("s@Bücher.test", "s@xn--bcher-kva.test"),
        ("üser@straße.test", "üser@xn--strae-oqa.test"),
    ],
)
def test_a_mail_goes_to_the_domain_of_idna_2008(address: str, written: str) -> None:
    source = write("Ada", to=address)
    assert f"\r\nTo: Ada <{written}>\r\n".encode() in source
    if written.isascii():
        assert read_in_python(source).mailboxes["To"] == [("Ada", written)]
        assert read_in_rust(source).mailboxes["To"] == [("Ada", written)]


def test_settings_name_a_sender_and_a_server_in_ascii() -> None:
    sender = parse_sender("Schule Süd <noreply@straße.test>", "Büro <office@straße.test>")
    assert sender == MailSender(
        "Schule Süd", "noreply@xn--strae-oqa.test", ("Büro", "office@xn--strae-oqa.test")
    )
    assert parse_smtp_url("smtp://mail.straße.test").host == "mail.xn--strae-oqa.test"


@pytest.mark.parametrize(
    "text",
    [
        *("noreply@i❤.test", "nöreply@school.test", "a@b.test, c@d.test", "School", "<>", ""),
        *("School <a@b.test> c", "Schule, Nord <a@b.test>", "a@b.test\r\nBcc: c@d.test"),
    ],
)
def test_a_setting_that_is_no_sender_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not like noreply@|is not a domain|may not contain"):
        parse_sender(text)


def test_half_a_character_in_a_text_loses_no_mail() -> None:
    assert write_text("Subject", "a\ud800") == "Subject: =?utf-8?b?Ye+/vQ==?=\r\n"
    assert read_in_python(write("a\ud800", "b\udfff")).parts == read_in_python(write()).parts
