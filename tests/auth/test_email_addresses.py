"""E-mail addresses: every form of an address is one account, and similar addresses are not."""

import asyncio
import secrets

import pytest

from slotlock.auth.accounts import EmailTaken, register
from slotlock.auth.sessions import SignedInSession
from slotlock.devserver.embedded import EmbeddedServers
from slotlock.domain.users.email_addresses import normalize_email
from tests.support.apps.processes import database_url
from tests.support.stores.users import auth_for_database

EQUAL_FORMS = [
    ("jo@x.test", "JO@X.TEST", " jo@x.test "),
    ("a@b\u00fccher.test", "a@xn--bcher-kva.test", "a@XN--BCHER-KVA.test", "a@B\u00dcCHER.test"),
    ("a@fa\u00df.test", "a@xn--fa-hia.test"),
    # UTS 46 maps similar characters of a domain to the same name.
    ("a@x.test", "a@\uff58.test", "a@x\u3002test"),
    ("k@x.test", "\u212a@x.test"),
    ("\u00e5@x.test", "\u212b@x.test", "A\u030a@x.test"),
    ("\u00e9@x.test", "e\u0301@x.test", "\u00c9@x.test"),
    ("stra\u00dfe@x.test", "STRA\u1e9eE@x.test"),
    # Only the lower-case letter has a composed form.
    ("\u01f0@x.test", "J\u030c@x.test"),
]
DIFFERENT_ADDRESSES = [
    ("admin@x.test", "\u0430dmin@x.test", "adm\u0131n@x.test", "ADM\u0130N@x.test"),
    ("fine@x.test", "\ufb01ne@x.test"),
    ("jo@x.test", "\uff4ao@x.test", "\u2460@x.test"),
    ("strasse@x.test", "stra\u00dfe@x.test"),
    ("a@fass.test", "a@fa\u00df.test"),
    ("a@x.test", "a+1@x.test", "a+2@x.test", "a@y.test"),
]
INVALID_ADDRESSES = [
    "", "a", "a@", "@b.test", "a b@c.test", "a@b\n.test",
    "a\u200bb@x.test", "a\u200db@x.test", "a\ufeffb@x.test", "a\u00adb@x.test", "a\u2060b@x.test",
    "a\u202eb@x.test", "a\u200fb@x.test", "a\u2067b@x.test", "a\ufe0fb@x.test", "a\u034fb@x.test",
    "a\u3164b@x.test", "a\u2800b@x.test", "a\u115fb@x.test", "a\U000e0061b@x.test",
    "a\U000e0100b@x.test", "a\u00a0b@x.test", "a\u0000@x.test", "\ud800@x.test", "a@x.test.",
    "a.@x.test", ".a@x.test", "a..b@x.test", "a@x..test", '"a"@x.test', '"a b"@x.test',
    "a(c)@x.test", "<a@x.test>", "A <a@x.test>", "a@[127.0.0.1]", "a@x.test,b@x.test",
    "a@x.test\r\nBcc: b@x.test", "a@" + "x" * 300 + ".test",
    "a" + "\u0301" * 15_000 + "\u0316" * 15_000 + "@x.test",
]  # fmt: skip


@pytest.mark.parametrize("forms", EQUAL_FORMS, ids=lambda forms: ascii(forms[-1]))
def test_forms_of_one_address_are_normalized_alike(forms: tuple[str, ...]) -> None:
    assert len({normalize_email(form) for form in forms}) == 1
    assert normalize_email(forms[0]) is not None


@pytest.mark.parametrize("forms", DIFFERENT_ADDRESSES, ids=lambda forms: ascii(forms[-1]))
def test_similar_addresses_stay_different(forms: tuple[str, ...]) -> None:
    normalized = {normalize_email(form) for form in forms}
    assert len(normalized - {None}) == len(forms)


@pytest.mark.parametrize("text", INVALID_ADDRESSES, ids=ascii)
def test_hidden_characters_and_complex_addresses_are_invalid(text: str) -> None:
    assert normalize_email(text) is None


def test_a_normalized_address_is_normalized_to_itself() -> None:
    for form in (form for forms in EQUAL_FORMS + DIFFERENT_ADDRESSES for form in forms):
        normalized = normalize_email(form)
        assert normalized is not None
        assert normalize_email(normalized) == normalized


async def test_one_of_concurrent_registrations_of_an_address_succeeds(
    servers: EmbeddedServers,
) -> None:
    tag = secrets.token_hex(8)
    forms = [f"{tag}\u00e9@b\u00fccher.test", f"{tag}E\u0301@xn--bcher-kva.test"] * 3
    async with auth_for_database(database_url(servers, "addresses")) as auth:
        outcomes = await asyncio.gather(
            *(register(auth, "Ada", form, "correct horse battery") for form in forms)
        )
    assert sum(isinstance(outcome, SignedInSession) for outcome in outcomes) == 1
    taken = [outcome for outcome in outcomes if isinstance(outcome, EmailTaken)]
    assert {outcome.email for outcome in taken} == {normalize_email(forms[0])}
    assert len(taken) == 5
