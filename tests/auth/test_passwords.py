"""Passwords are kept as Argon2id, and checking them holds nobody else up."""

import asyncio
from collections.abc import Iterator

import pytest

from slotlock.auth import passwords as room
from slotlock.auth.passwords import HasherBusyError, PasswordHasher

PASSWORD = "correct horse battery"


@pytest.fixture
def passwords() -> Iterator[PasswordHasher]:
    started = PasswordHasher(threads=1)
    yield started
    started.close()


async def test_a_hash_is_argon2id_and_different_each_time(passwords: PasswordHasher) -> None:
    first, second = await passwords.hash(PASSWORD), await passwords.hash(PASSWORD)
    assert first.startswith("$argon2id$v=19$m=19456,t=2,p=1$")
    assert first != second
    assert PASSWORD not in first


async def test_only_the_password_itself_matches(passwords: PasswordHasher) -> None:
    password_hash = await passwords.hash(PASSWORD)
    assert await passwords.matches(PASSWORD, password_hash)
    for other in ("", PASSWORD + " ", PASSWORD.upper(), PASSWORD[:-1]):
        assert not await passwords.matches(other, password_hash)


@pytest.mark.parametrize(
    ("sent", "kept"), [("cafe\u0301 noir", "caf\u00e9 noir"), ("\uff41" * 8, "a" * 8)]
)
async def test_a_password_is_the_same_however_a_keyboard_sends_it(
    passwords: PasswordHasher, sent: str, kept: str
) -> None:
    assert await passwords.matches(sent, await passwords.hash(kept))
    assert await passwords.matches(kept, await passwords.hash(sent))


@pytest.mark.parametrize("password", ["\u0000" * 8, "nul\u0000byte", "\U0001f511" * 128, " " * 8])
async def test_every_character_counts(passwords: PasswordHasher, password: str) -> None:
    password_hash = await passwords.hash(password)
    assert await passwords.matches(password, password_hash)
    assert not await passwords.matches(password[:-1], password_hash)


async def test_an_unknown_person_costs_the_same_work_and_never_matches(
    passwords: PasswordHasher, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked = []
    verify = room._CONTEXT.verify

    def watched(password: str, password_hash: str) -> bool:
        checked.append((password, password_hash.split("$")[1:4]))
        return bool(verify(password, password_hash))

    monkeypatch.setattr(room._CONTEXT, "verify", watched)
    assert not await passwords.matches(PASSWORD, await passwords.hash("another password"))
    assert not await passwords.matches(PASSWORD, None)
    known, unknown = checked
    assert known == unknown


async def test_the_event_loop_goes_on_while_passwords_are_hashed(passwords: PasswordHasher) -> None:
    hashing = asyncio.gather(*(passwords.hash(PASSWORD) for _ in range(5)))
    ticks = 0
    while not hashing.done():
        ticks += 1
        await asyncio.sleep(0)
    await hashing
    assert ticks > 100


async def test_the_line_is_bounded_and_opens_again(
    passwords: PasswordHasher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, "MAX_QUEUED_HASHES", 3)
    outcomes = await asyncio.gather(
        *(passwords.hash(PASSWORD) for _ in range(5)), return_exceptions=True
    )
    assert [type(outcome) for outcome in outcomes] == [
        str,
        str,
        str,
        HasherBusyError,
        HasherBusyError,
    ]
    with pytest.raises(HasherBusyError):
        await asyncio.gather(*(passwords.matches(PASSWORD, None) for _ in range(4)))


async def test_whoever_leaves_the_line_makes_room(
    passwords: PasswordHasher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, "MAX_QUEUED_HASHES", 1)
    leaving = asyncio.create_task(passwords.hash(PASSWORD))
    await asyncio.sleep(0)
    with pytest.raises(HasherBusyError):
        await passwords.hash(PASSWORD)
    leaving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leaving
    assert await passwords.hash(PASSWORD)
