"""One thing has one word in each language: on the board, in mails, sheets and tables."""

import json
import re
from collections.abc import Iterator
from dataclasses import fields

import pytest

from slotlock.api.board.files import FOR_ORGANIZERS, board_files
from slotlock.api.exports.sheet_texts import SHEET_TEXTS
from slotlock.api.exports.table_texts import TEXTS
from slotlock.domain.reports.export_formats import ExportLanguage
from slotlock.infrastructure.mail.mail_texts import TEMPLATES, render
from tests.support.board.sources import LANGUAGES, MODULES, OPERATIONS, refusals

# Words that name something else, or that another word names already.
OTHER_WORDS = {
    "en": r"\be-mail|[Cc]ancelled|\b[Cc]ampaign|\b[Ii]n line\b|the line\b|\b[Bb]an(s|ned)?\b"
    r"|\bfits\b|any more\b|\b[Tt]his is no (?!longer)|[Vv]ouch|\b[Ss]lots?\b|\b[Hh]eld\b"
    r"|[Tt]imetable|\b[Dd]oor\b|\b[Mm]onitor\b|\bImprint\b|\borganizers publish",
    "de": r"Kampagne|Stundenplan|Organisierende|Sekretariat|Passwort \w*setz|gehört dir|[Ss]torn"
    r"|Warteschlange|Niemand passt|Nichts passt|bei einem Anbieter an|Monitor\b|Teilnahmeliste"
    r"|verfallen\b|(?<!E-)\bMails?\b",
    "zh": r"账户|预订|群组|时段|课表|退回(?!\uff0c)|归你|监控|禁用|电子邮箱|邮箱地址|预约期(?!间)"
    r"|假日列表|假期列表|调换|申请顺序|[^\u0000-\u007f] ?, | [\u3001\u3002\uff01\uff0c\uff1f]"
    r"|(?<!预约)活动",
}
# How texts speak to members and to organizers. At the begin of a sentence, `Sie` may be "they".
TO_ORGANIZERS = {"de": r"(?<![.:?] )(?<!^)\bSie\b|\bIhr\w*\b|\bIhnen\b", "zh": "您"}
TO_MEMBERS = {
    "en": r"\b[Yy]ou\b|\b[Yy]our\b",
    "de": r"\b[Dd](u|ich|ir|ein\w*)\b|\b(Buche|Gib|Melde|Stell|Versuche es|Wende|Lass|[Ff]rag"
    r"|Bestätige|Bring|Entferne|Erinnere|Füge|Öffne|Trenne|Wähle|Zeig|Ändere|Nimm|Lege)\b",
    "zh": "你",
}


def texts_of(language: str) -> Iterator[tuple[str, str]]:
    """Yield all that users read, with its place: without the variables and conditions in it."""
    for key, text in LANGUAGES[language].items():
        yield key, re.sub(r"\{\w+\}", "x", json.dumps(text, ensure_ascii=False))
    for path in TEMPLATES.glob(f"*.{language}.txt"):
        yield path.name, re.sub(r"\{[{%].*?[}%]\}", "x", path.read_text())
    sheet = SHEET_TEXTS[ExportLanguage(language)]
    yield from ((each.name, getattr(sheet, each.name)) for each in fields(sheet))
    yield from ((key, texts[language]) for key, texts in TEXTS.items() if language in texts)


@pytest.mark.parametrize("language", OTHER_WORDS)
def test_one_thing_has_one_word(language: str) -> None:
    other_words = re.compile(OTHER_WORDS[language])
    found = {key: word[0] for key, text in texts_of(language) if (word := other_words.search(text))}
    assert found == {}


@pytest.mark.parametrize(("language", "formal"), TO_ORGANIZERS.items())
def test_members_and_organizers_are_spoken_to_in_one_way_each(language: str, formal: str) -> None:
    folders = {"messages": formal, "messages/later": formal}
    folders[f"{FOR_ORGANIZERS}/messages"] = TO_MEMBERS[language]
    for folder, words in folders.items():
        texts = _messages(f"{folder}/{language}.js")
        assert {key: text for key, text in texts.items() if re.search(words, text)} == {}


def _messages(name: str) -> dict[str, str]:
    values = board_files()[name].decode().partition("*/ (")[2].rpartition(")")[0]
    return {key: json.dumps(text, ensure_ascii=False) for key, text in json.loads(values).items()}


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_refusal_of_an_organizer_does_not_speak_to_the_member(language: str) -> None:
    texts, words = LANGUAGES[language], re.compile(TO_MEMBERS[language])
    organizing = "".join(text for name, text in MODULES.items() if name.startswith(FOR_ORGANIZERS))
    codes = {
        code
        for name in set(re.findall(r'"(\w+)"', organizing)) & OPERATIONS.keys()
        for code in refusals(OPERATIONS[name])
        if not texts.keys() & {f"why.{code}", f"error.{code}"}
    }
    # One's own account, a member's team and time, and the sign-in of both.
    others = {"CANNOT_BAN_SELF", "CANNOT_ERASE_SELF", "NOT_TEAMMATE", "CUTOFF_PASSED"}
    found = {code for code in codes if words.search(str(texts[f"refusal.{code}"]))}
    assert found - others - {"TOO_MANY_ATTEMPTS"} == set()


def test_no_blank_stays_between_chinese_and_a_chinese_value() -> None:
    def text(by: str, site_name: str = "School") -> str:
        values = {"by": by, "title": "象棋", "note": "带 鞋", "when": "", "place": "", "link": ""}
        parts = [("booked", {**values, "url": ""}), ("password_changed", {"board_url": ""})]
        mail = render("zh", parts, name=None, site_name=site_name)
        assert "\0" not in mail.html + mail.text
        return mail.text

    assert "王老师已为你预约。" in text("王老师")
    assert "Ms Lee 已为你预约。" in text("Ms Lee")
    assert "你在夜校的账号密码已更改" in text("Ms Lee", "夜校")
    assert "带 鞋" in text("Ms Lee")  # what an organizer wrote stays


def test_a_text_in_german_has_formal_words_exactly_if_it_says_du() -> None:
    informal, formal = re.compile(TO_MEMBERS["de"]), re.compile(r"\bSie\b|\bIhr\w*\b|\bIhnen\b")
    german = _messages("messages/de.js") | _messages("messages/later/de.js")
    instead = _messages("messages/de-formal.js")
    assert {key for key, text in german.items() if informal.search(text)} == {*instead}
    for key, text in instead.items():
        assert formal.search(text), key
        assert not informal.search(text), key
        for part in (r"\{\w+\}", r'"\w+":'):  # the variables, and the forms of a plural
            assert re.findall(part, text) == re.findall(part, german[key]), key
