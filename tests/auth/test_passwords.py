"""Password hashing with Argon2id, outside of the event loop and with a bounded queue."""

import asyncio
from collections.abc import Iterator

import pytest

import slotlock.auth.passwords
from slotlock.auth.passwords import HasherBusyError, PasswordHasher

PASSWORD = "correct horse battery"


@pytest.fixture
def passwords() -> Iterator[PasswordHasher]:
    started = PasswordHasher(threads=1)
    yield started
    started.close()


async def test_a_hash_is_argon2id_with_a_random_salt(passwords: PasswordHasher) -> None:
    first, second = await passwords.hash(PASSWORD), await passwords.hash(PASSWORD)
    assert first.startswith("$argon2id$v=19$m=19456,t=2,p=1$")
    assert first != second
    assert PASSWORD not in first


async def test_only_the_same_password_matches(passwords: PasswordHasher) -> None:
    password_hash = await passwords.hash(PASSWORD)
    assert await passwords.matches(PASSWORD, password_hash)
    for other in ("", PASSWORD + " ", PASSWORD.upper(), PASSWORD[:-1]):
        assert not await passwords.matches(other, password_hash)


@pytest.mark.parametrize(
    ("decomposed", "composed"), [("cafe\u0301 noir", "caf\u00e9 noir"), ("\uff41" * 8, "a" * 8)]
)
async def test_composed_and_decomposed_passwords_are_equal(
    passwords: PasswordHasher, decomposed: str, composed: str
) -> None:
    assert await passwords.matches(decomposed, await passwords.hash(composed))
    assert await passwords.matches(composed, await passwords.hash(decomposed))


@pytest.mark.parametrize("password", ["\u0000" * 8, "nul\u0000byte", "\U0001f511" * 128, " " * 8])
async def test_every_character_of_a_password_counts(
    passwords: PasswordHasher, password: str
) -> None:
    password_hash = await passwords.hash(password)
    assert await passwords.matches(password, password_hash)
    assert not await passwords.matches(password[:-1], password_hash)


async def test_an_unknown_account_costs_the_same_work_and_never_matches(
    passwords: PasswordHasher, monkeypatch: pytest.MonkeyPatch
) -> None:
    verified = []
    verify = slotlock.auth.passwords._CONTEXT.verify

    def recording_verify(password: str, password_hash: str) -> bool:
        verified.append((password, password_hash.split("$")[1:4]))
        return bool(verify(password, password_hash))

    monkeypatch.setattr(slotlock.auth.passwords._CONTEXT, "verify", recording_verify)
    assert not await passwords.matches(PASSWORD, await passwords.hash("another password"))
    assert not await passwords.matches(PASSWORD, None)
    known, unknown = verified
    assert known == unknown


async def test_hashing_does_not_block_the_event_loop(passwords: PasswordHasher) -> None:
    hashing = asyncio.gather(*(passwords.hash(PASSWORD) for _ in range(5)))
    ticks = 0
    while not hashing.done():
        ticks += 1
        await asyncio.sleep(0)
    await hashing
    assert ticks > 100


@pytest.fixture
def short_queue(monkeypatch: pytest.MonkeyPatch) -> Iterator[PasswordHasher]:
    """Return a hasher with one thread, for which two hashes may wait."""
    monkeypatch.setattr(slotlock.auth.passwords, "MAX_WAITING_PER_THREAD", 2)
    started = PasswordHasher(threads=1)
    yield started
    started.close()


async def test_the_queue_is_bounded_and_accepts_hashes_again(short_queue: PasswordHasher) -> None:
    outcomes = await asyncio.gather(
        *(short_queue.hash(PASSWORD) for _ in range(5)), return_exceptions=True
    )
    assert [type(outcome) for outcome in outcomes] == [
        str,
        str,
        str,
        HasherBusyError,
        HasherBusyError,
    ]
    with pytest.raises(HasherBusyError):
        await asyncio.gather(*(short_queue.matches(PASSWORD, None) for _ in range(4)))


async def test_a_cancelled_hash_leaves_the_queue(short_queue: PasswordHasher) -> None:
    hashing = [asyncio.create_task(short_queue.hash(PASSWORD)) for _ in range(3)]
    await asyncio.sleep(0)
    with pytest.raises(HasherBusyError):
        await short_queue.hash(PASSWORD)
    hashing.pop().cancel()
    await asyncio.sleep(0)
    assert await short_queue.hash(PASSWORD)
    await asyncio.gather(*hashing)


async def test_a_sign_in_goes_before_the_registrations_of_any_address(
    passwords: PasswordHasher,
) -> None:
    finished: list[str] = []
    password_hash = await passwords.hash(PASSWORD)

    async def register(number: int) -> None:
        await passwords.hash(PASSWORD, f"192.0.2.{number}")
        finished.append("register")

    async def sign_in() -> None:
        assert await passwords.matches(PASSWORD, password_hash, "192.0.2.1")
        finished.append("sign in")

    await asyncio.gather(*map(register, range(6)), sign_in())
    assert finished[:2] == ["register", "sign in"]
