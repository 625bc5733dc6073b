"""Hosts whose clocks are wrong, differ or are set agree on tokens, campaigns and holds.

Each promise has a control: the same scenario with apps that decide by the clocks of their hosts.
"""

import asyncio
import secrets
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from itertools import permutations
from pathlib import Path

import pytest

from slotlock.devserver.embedded import EmbeddedServers
from tests.support.apps.deployment import Deployment, open_deployment
from tests.support.apps.processes import AppProcess, app_environment
from tests.support.apps.skewed_apps import SkewedApp, skewed_apps
from tests.support.clients.booking_client import (
    SLOT_WITH_OWN_BOOKING,
    BookingClient,
    expire_holds,
)
from tests.support.clients.campaigns import book_with_refusal, create_campaign, update_campaign
from tests.support.clients.client import GraphQLTestClient, Json, hours_from_now
from tests.support.scenarios.campaign_opening import USER_COUNT, opening, too_early

AHEAD_S, BEHIND_S, SLIGHTLY_AHEAD_S = 60.0, -60.0, 1.5
SKEWS_S = (AHEAD_S, BEHIND_S, SLIGHTLY_AHEAD_S)
# More than the leeway of tokens, which alone would make apps agree that are minutes apart.
HOUR_S = 3600.0
HOLD_LEFT = timedelta(seconds=2)
# Less than the clock of the fast app is ahead, and longer than a busy machine needs to look.
LONG_HOLD_LEFT = timedelta(seconds=30)
CERTAINLY_LATE = timedelta(seconds=1)

SESSION = "{ __typename ... on Session { accessToken refreshToken } }"
REGISTER = f"mutation($input: RegisterInput!) {{ register(input: $input) {SESSION} }}"
REFRESH = f"mutation($token: String!) {{ refreshSession(refreshToken: $token) {SESSION} }}"
ME = "{ me { __typename } }"


@pytest.fixture(scope="module")
def started_apps(
    servers: EmbeddedServers, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[SkewedApp]]:
    """Yield an app that is a minute ahead, one that is a minute behind, and one slightly ahead."""
    environment = app_environment(servers, "host_clocks")
    with skewed_apps(environment, tmp_path_factory.mktemp("apps"), SKEWS_S) as apps:
        yield apps


@pytest.fixture(scope="module")
def started_controls(
    servers: EmbeddedServers, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[SkewedApp]]:
    """Yield such apps that decide by the clocks of their hosts.

    Their database is another one, since their sweepers end holds early.
    """
    environment, home = app_environment(servers, "host_clocks_control"), "control_apps"
    directory = tmp_path_factory.mktemp(home)
    with skewed_apps(environment, directory, SKEWS_S[:2], "mongodb-time") as apps:
        yield apps


def with_their_skews(apps: list[SkewedApp]) -> list[SkewedApp]:
    """Set the clocks of the apps back to their skews."""
    for app, skew_s in zip(apps, SKEWS_S, strict=False):
        app.step_clock(skew_s)
        app.wait_until_measured(skew_s)
    return apps


@pytest.fixture
def skewed(started_apps: list[SkewedApp]) -> list[SkewedApp]:
    """Return the apps with their skews."""
    return with_their_skews(started_apps)


@pytest.fixture
def controls(started_controls: list[SkewedApp]) -> list[SkewedApp]:
    """Return the controls with their skews."""
    return with_their_skews(started_controls)


@pytest.fixture
async def deployment(skewed: list[SkewedApp], log_dir: Path) -> AsyncIterator[Deployment]:
    """Open a deployment of the apps."""
    environment = skewed[0].app.environment
    async with open_deployment(environment, log_dir, USER_COUNT) as opened:
        yield opened


@pytest.fixture
async def control(controls: list[SkewedApp], log_dir: Path) -> AsyncIterator[Deployment]:
    """Open a deployment of the controls."""
    environment = controls[0].app.environment
    async with open_deployment(environment, log_dir, USER_COUNT) as opened:
        yield opened


async def sign_in(deployment: Deployment, app: AppProcess) -> Json:
    """Register a user at an app and return the session."""
    email = f"{secrets.token_hex(8)}@slotlock.test"
    fields = {"name": "Ada", "email": email, "password": "correct horse battery"}
    session = await GraphQLTestClient(deployment.http, app.url).execute(REGISTER, input=fields)
    assert session["__typename"] == "Session", session
    return dict(session)


async def use_token(deployment: Deployment, app: AppProcess, session: Json) -> str:
    """Use the access token of a session at an app. Returns the type or the code of the error."""
    client = GraphQLTestClient(deployment.http, app.url, session["accessToken"])
    result = await client.send(ME)
    if "errors" in result:
        return str(result["errors"][0]["extensions"]["code"])
    return str(result["data"]["me"]["__typename"])


async def use_session_at(deployment: Deployment, issuer: AppProcess, other: AppProcess) -> Json:
    """Sign in at an app, then use and refresh the session at another one at once."""
    session = await sign_in(deployment, issuer)
    used = await use_token(deployment, other, session)
    refreshed = await GraphQLTestClient(deployment.http, other.url).execute(
        REFRESH, token=session["refreshToken"]
    )
    if refreshed["__typename"] != "Session":
        return {"used": used, "refreshed": refreshed["__typename"]}
    return {"used": used, "refreshed": await use_token(deployment, issuer, refreshed)}


ACCEPTED = {"used": "User", "refreshed": "User"}


async def test_a_session_of_one_app_is_accepted_and_refreshed_at_every_other_at_once(
    deployment: Deployment, skewed: list[SkewedApp]
) -> None:
    for issuer, other in permutations(skewed, 2):
        assert await use_session_at(deployment, issuer.app, other.app) == ACCEPTED


async def sessions_an_hour_apart(deployment: Deployment, apps: list[SkewedApp]) -> list[Json]:
    """Set one clock an hour ahead and one behind. Returns how each uses the other's session."""
    fast, slow = apps[:2]
    for stepped, ahead_s in ((fast, HOUR_S), (slow, -HOUR_S)):
        stepped.step_clock(ahead_s)
    return [
        await use_session_at(deployment, fast.app, slow.app),
        await use_session_at(deployment, slow.app, fast.app),
    ]


async def test_sessions_are_accepted_at_apps_whose_host_clocks_are_hours_apart(
    deployment: Deployment, skewed: list[SkewedApp]
) -> None:
    assert await sessions_an_hour_apart(deployment, skewed) == [ACCEPTED] * 2


async def test_control_by_host_clocks_neither_app_accepts_the_tokens_of_the_other(
    control: Deployment, controls: list[SkewedApp]
) -> None:
    of_fast, of_slow = await sessions_an_hour_apart(control, controls)
    assert of_fast == {"used": "UNAUTHENTICATED", "refreshed": "InvalidSession"}
    assert of_slow["used"] == "UNAUTHENTICATED"


async def test_a_campaign_opens_at_the_true_instant_at_every_app(
    deployment: Deployment, skewed: list[SkewedApp]
) -> None:
    opens, responses = await opening(deployment, [each.app for each in skewed])
    assert {each.name for each in responses if each.received < opens} == {"NotYetOpen"}
    assert too_early(opens, responses) == 0
    late = [each for each in responses if each.sent >= opens + CERTAINLY_LATE]
    assert "NotYetOpen" not in {each.name for each in late}


async def test_control_by_its_host_clock_a_fast_app_opens_a_campaign_early(
    control: Deployment, controls: list[SkewedApp]
) -> None:
    opens, responses = await opening(control, [controls[0].app])
    assert too_early(opens, responses) > 0


async def confirm_at(deployment: Deployment, holder: AppProcess, other: AppProcess) -> str:
    """Hold a place for a minute at an app and confirm it at another one. Returns the outcome."""
    slot_id = await deployment.add_slot(holder, holdMinutes=1)
    hold = await deployment.client(holder, 0).hold(slot_id)
    return str((await deployment.client(other, 0).confirm(hold["id"]))["__typename"])


async def test_a_hold_of_one_app_is_confirmed_at_every_other(
    deployment: Deployment, skewed: list[SkewedApp]
) -> None:
    for holder, other in permutations(skewed, 2):
        assert await confirm_at(deployment, holder.app, other.app) == "BookingConfirmed"


async def test_control_by_host_clocks_a_hold_of_the_slow_app_has_expired_at_the_fast_one(
    control: Deployment, controls: list[SkewedApp]
) -> None:
    fast, slow = controls
    assert await confirm_at(control, slow.app, fast.app) == "HoldExpired"


async def seen_to_end(user: BookingClient, slot_id: str) -> datetime:
    """Return the time at which a hold of the user was first seen to have ended."""
    while (await user.execute(SLOT_WITH_OWN_BOOKING, slot=slot_id))["myBooking"] is not None:
        await asyncio.sleep(0.01)
    return datetime.now(UTC)


async def early_ends(
    deployment: Deployment, apps: list[SkewedApp], hold_left: timedelta = HOLD_LEFT
) -> int:
    """Let a hold end that all apps watch. Returns how many of them see its end too early."""
    slot_id = await deployment.add_slot(apps[0].app)
    users = [deployment.client(each.app, 0) for each in apps]
    await users[0].hold(slot_id)
    ends = datetime.now(UTC) + hold_left
    expire_holds(deployment.mongo_url, slot_id, expired_for_s=-hold_left.total_seconds())
    seen = await asyncio.gather(*(seen_to_end(user, slot_id) for user in users))
    return sum(at < ends for at in seen)


async def test_no_app_ends_a_hold_early(deployment: Deployment, skewed: list[SkewedApp]) -> None:
    assert await early_ends(deployment, skewed) == 0


async def test_control_by_its_host_clock_a_fast_app_ends_a_hold_early(
    control: Deployment, controls: list[SkewedApp]
) -> None:
    assert await early_ends(control, controls[:1], LONG_HOLD_LEFT) > 0


async def use_session_after_step(
    deployment: Deployment, stepped: SkewedApp, ahead_s: float
) -> list[str]:
    """Step the clock of an app and use an earlier session there, at once and when measured."""
    session = await sign_in(deployment, stepped.app)
    stepped.step_clock(ahead_s)
    at_once = await use_token(deployment, stepped.app, session)
    await asyncio.to_thread(stepped.wait_until_measured, ahead_s)
    return [at_once, await use_token(deployment, stepped.app, session)]


async def test_sessions_stay_valid_when_a_host_clock_steps(
    deployment: Deployment, skewed: list[SkewedApp]
) -> None:
    _, other, stepped = skewed
    for step_s in (60.0, -60.0, HOUR_S):
        ahead_s = SLIGHTLY_AHEAD_S + step_s
        assert await use_session_after_step(deployment, stepped, ahead_s) == ["User", "User"]
        assert await use_session_at(deployment, stepped.app, other.app) == ACCEPTED
        assert await use_session_at(deployment, other.app, stepped.app) == ACCEPTED


async def test_control_by_its_host_clock_a_step_ends_sessions(
    control: Deployment, controls: list[SkewedApp]
) -> None:
    stepped = controls[0]
    outcomes = await use_session_after_step(control, stepped, AHEAD_S + HOUR_S)
    assert outcomes == ["UNAUTHENTICATED"] * 2


async def book_after_steps(deployment: Deployment, stepped: SkewedApp) -> list[str]:
    """Step the clock of a slow app beyond the opening of a campaign, and back before it.

    Returns the outcomes of bookings before the opening, at once and when the step is measured, and
    of a booking after the opening.
    """
    app = stepped.app
    organizer, users = deployment.organizer(app), deployment.clients(app, 3)
    campaign_id = await create_campaign(organizer, opensAt=hours_from_now(50 / 3600))
    slot_id = await deployment.add_slot(app, campaignId=campaign_id, capacity=3)
    stepped.step_clock(AHEAD_S)
    outcomes = [await book_with_refusal(users[0], slot_id)]
    await asyncio.to_thread(stepped.wait_until_measured, AHEAD_S)
    outcomes.append(await book_with_refusal(users[1], slot_id))
    await update_campaign(organizer, campaign_id, opensAt=hours_from_now(-1 / 3600))
    stepped.step_clock(BEHIND_S)
    outcomes.append(await book_with_refusal(users[2], slot_id))
    return [str(outcome["__typename"]) for outcome in outcomes]


async def test_a_campaign_does_not_open_or_close_when_a_host_clock_steps(
    deployment: Deployment, skewed: list[SkewedApp]
) -> None:
    outcomes = await book_after_steps(deployment, skewed[1])
    assert outcomes == ["NotYetOpen", "NotYetOpen", "Booked"]


async def test_control_by_its_host_clock_a_step_opens_and_closes_a_campaign(
    control: Deployment, controls: list[SkewedApp]
) -> None:
    outcomes = await book_after_steps(control, controls[1])
    assert outcomes == ["Booked", "Booked", "NotYetOpen"]
