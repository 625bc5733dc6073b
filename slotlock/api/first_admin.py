"""The admin whom the settings name: a start creates the account, unless it exists."""

import logging

from slotlock.api.settings.settings import ADMIN_NAME, Settings, SettingsError, env_name
from slotlock.auth import accounts
from slotlock.auth.container import Auth
from slotlock.auth.password_policy.rules import validate_password
from slotlock.domain.users.email_addresses import normalize_login_name
from slotlock.domain.users.user import Role
from slotlock.infrastructure.mongo.client import IndexMissingError, open_database
from slotlock.infrastructure.mongo.repositories import Repositories

log = logging.getLogger("slotlock")


async def check_admin_password(settings: Settings) -> None:
    """Check the password with which a start would create the admin.

    If the account exists, a weak password is only worth a warning: an upgrade may have made the
    rules stricter.

    Raises:
        SettingsError: the account does not exist, and the password is weak.
        PyMongoError: MongoDB is unavailable.
    """
    email, password = settings.admin_email, settings.admin_password
    if email is None or password is None:
        return
    problem = validate_password(password.get_secret_value(), ADMIN_NAME, email)
    if problem is None:
        return
    async with open_database(settings.mongo_url or "") as database:
        users = Repositories(database).users
        account = await users.find_with_password_hash(normalize_login_name(email) or "")
    if account is None:
        raise SettingsError(f"{env_name('admin_password')}: {problem}")
    log.warning(
        "%s: %s The account exists and keeps its password; change both.",
        env_name("admin_password"),
        problem,
    )


async def create_admin(settings: Settings, auth: Auth) -> None:
    """Create the admin that the settings name, unless the account exists."""
    if settings.admin_email is None or settings.admin_password is None:
        return
    password = settings.admin_password.get_secret_value()
    email = settings.admin_email
    account = await auth.repositories.users.find_with_password_hash(
        normalize_login_name(email) or ""
    )
    if account is None:
        try:
            # Another server process may create it first.
            await accounts.create_user(auth, ADMIN_NAME, email, password, Role.ADMIN)
        except IndexMissingError as error:
            log.warning("the account %s is not created at this start: %s", email, error)
        return
    # An earlier start created the account, or it belongs to another user.
    user, password_hash = account
    if user.role is not Role.ADMIN:
        log.warning(
            "%s exists but is not an admin; if the account is yours, use `slotlock users set-role`",
            email,
        )
    if not await auth.password_hasher.matches(password, password_hash):
        log.warning("%s exists with a different password, which was not changed", email)
