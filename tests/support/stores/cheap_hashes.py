"""Passwords that are hashed at no cost. By design it is 50 ms of CPU, which few tests are about."""

from passlib.context import LazyCryptContext

from slotlock.auth import passwords

REAL_CONTEXT, REAL_UNKNOWN_HASH = passwords._CONTEXT, passwords._UNKNOWN_HASH
# The hash of a password that no test knows.
NO_PASSWORD = (
    "$argon2id$v=19$m=8,t=1,p=1$WisFYGxtTQkBAKDUOkdobQ$gzHXq+t2Q3Bghk+MNcb0RcC+oKVECC370qxj1wVM8W0"
)


def hash_cheaply() -> None:
    """Let this process hash the passwords of thousands of users."""
    costs = {"argon2__memory_cost": 8, "argon2__time_cost": 1, "argon2__parallelism": 1}
    passwords._CONTEXT = LazyCryptContext(schemes=["argon2"], argon2__type="ID", **costs)
    passwords._UNKNOWN_HASH = NO_PASSWORD
