"""The checks of each client library, in their order."""

import asyncio
import time
from collections.abc import Awaitable, Callable

from conformance.clients.client_process import RESPONSE_TIMEOUT_S
from conformance.clients.scenario import (
    BOOK,
    READ,
    WATCH,
    ClientCheckError,
    Scenario,
    expect,
    first_code,
)


async def a_query_returns_data(scenario: Scenario) -> None:
    response = await scenario.member.execute("query { me { name } }")
    expect(response.get("data", {}).get("me", {}).get("name") == "Ada", response)


async def a_query_takes_variables(scenario: Scenario) -> None:
    response = await scenario.member.execute(READ, slot=scenario.slot_id)
    expect(response["data"]["slot"]["remaining"] == 5, response)


async def a_mutation_returns_data(scenario: Scenario) -> None:
    response = await scenario.member.execute(BOOK, slot=scenario.slot_id)
    expect(response["data"]["bookSlot"]["__typename"] == "Booked", response)


async def a_refusal_is_data(scenario: Scenario) -> None:
    response = await scenario.member.execute(BOOK, slot=scenario.slot_id)
    expect(not response.get("errors"), response)
    expect(response["data"]["bookSlot"]["code"] == "ALREADY_BOOKED", response)


async def an_invalid_document_is_reported(scenario: Scenario) -> None:
    response = await scenario.member.execute("query { nothing }")
    expect(first_code(response) == "GRAPHQL_VALIDATION_FAILED", response)


async def a_wrong_variable_is_reported(scenario: Scenario) -> None:
    response = await scenario.member.execute(READ, slot=["not", "an", "id"])
    expect(first_code(response) == "BAD_USER_INPUT", response)


async def a_missing_sign_in_is_reported(scenario: Scenario) -> None:
    response = await scenario.anonymous.execute("query { myTeams { name } }")
    expect(first_code(response) == "UNAUTHENTICATED", response)


async def an_anonymous_client_reads_public_data(scenario: Scenario) -> None:
    response = await scenario.anonymous.execute(READ, slot=scenario.slot_id)
    expect(response["data"]["slot"]["title"] == "A slot", response)


async def a_bad_token_is_reported(scenario: Scenario) -> None:
    response = await scenario.impostor.execute("query { myTeams { name } }")
    expect(first_code(response) == "UNAUTHENTICATED" or response.get("closed") == 4403, response)


async def a_subscription_starts_with_the_current_state(scenario: Scenario) -> None:
    scenario.subscription_id = await scenario.member.subscribe(WATCH, slots=[scenario.slot_id])
    response = await scenario.member.next(scenario.subscription_id)
    expect(response["data"]["slotAvailability"]["remaining"] == 4, response)


async def a_subscription_receives_a_booking(scenario: Scenario) -> None:
    await scenario.expect_version(await scenario.change_slot())


async def a_refused_subscription_closes_no_other(scenario: Scenario) -> None:
    invalid = await scenario.member.subscribe("subscription { nothing }")
    response = await scenario.member.next(invalid)
    expect(first_code(response) == "GRAPHQL_VALIDATION_FAILED", response)
    await scenario.expect_version(await scenario.change_slot())


async def a_failed_subscription_is_reported(scenario: Scenario) -> None:
    failed = await scenario.member.subscribe(WATCH, slots=[])
    response = await scenario.member.next(failed)
    expect(first_code(response) == "BAD_USER_INPUT", response)
    await scenario.expect_version(await scenario.change_slot())


async def unsubscribing_ends_the_subscription_at_the_server(scenario: Scenario) -> None:
    count = await scenario.active_subscriptions()
    second = await scenario.member.subscribe("subscription { myBookings { booking { id } } }")
    await _wait_for_subscriptions(scenario, count + 1)
    await scenario.member.unsubscribe(second)
    await _wait_for_subscriptions(scenario, count)


async def _wait_for_subscriptions(scenario: Scenario, expected: float) -> None:
    deadline = time.monotonic() + RESPONSE_TIMEOUT_S
    while (count := await scenario.active_subscriptions()) != expected:
        if time.monotonic() > deadline:
            raise ClientCheckError(f"the server counts {count:g} subscriptions, not {expected:g}")
        await asyncio.sleep(0.02)


async def the_client_reconnects_after_a_kill(scenario: Scenario) -> None:
    await asyncio.to_thread(scenario.app.kill)
    await asyncio.to_thread(scenario.app.start)
    await scenario.expect_version(await scenario.change_slot())


async def the_client_reconnects_after_a_stop(scenario: Scenario) -> None:
    await asyncio.to_thread(scenario.app.stop)
    await asyncio.to_thread(scenario.app.start)
    await scenario.expect_version(await scenario.change_slot())


async def the_client_still_queries(scenario: Scenario) -> None:
    response = await scenario.member.execute(READ, slot=scenario.slot_id)
    expect(response.get("data") is not None and response["data"]["slot"] is not None, response)


CHECKS: dict[str, Callable[[Scenario], Awaitable[None]]] = {
    check.__name__.replace("_", " "): check
    for check in (
        a_query_returns_data,
        a_query_takes_variables,
        a_mutation_returns_data,
        a_refusal_is_data,
        an_invalid_document_is_reported,
        a_wrong_variable_is_reported,
        a_missing_sign_in_is_reported,
        an_anonymous_client_reads_public_data,
        a_bad_token_is_reported,
        a_subscription_starts_with_the_current_state,
        a_subscription_receives_a_booking,
        a_refused_subscription_closes_no_other,
        a_failed_subscription_is_reported,
        unsubscribing_ends_the_subscription_at_the_server,
        the_client_reconnects_after_a_kill,
        the_client_reconnects_after_a_stop,
        the_client_still_queries,
    )
}
