"""What each client is put through, in this order."""

import asyncio
import time
from collections.abc import Awaitable, Callable

from conformance.clients.client_process import RESPONSE_TIMEOUT_S
from conformance.clients.scenario import (
    BOOK,
    READ,
    WATCH,
    ClientCheckError,
    Scene,
    expect,
    first_code,
)


async def a_query_answers(scene: Scene) -> None:
    answer = await scene.member.execute("query { me { name } }")
    expect(answer.get("data", {}).get("me", {}).get("name") == "Ada", answer)


async def a_query_takes_variables(scene: Scene) -> None:
    answer = await scene.member.execute(READ, slot=scene.slot_id)
    expect(answer["data"]["slot"]["remaining"] == 5, answer)


async def a_mutation_answers(scene: Scene) -> None:
    answer = await scene.member.execute(BOOK, slot=scene.slot_id)
    expect(answer["data"]["bookSlot"]["__typename"] == "Booked", answer)


async def a_refusal_is_data(scene: Scene) -> None:
    answer = await scene.member.execute(BOOK, slot=scene.slot_id)
    expect(not answer.get("errors"), answer)
    expect(answer["data"]["bookSlot"]["code"] == "ALREADY_BOOKED", answer)


async def an_invalid_document_is_reported(scene: Scene) -> None:
    answer = await scene.member.execute("query { nothing }")
    expect(first_code(answer) == "GRAPHQL_VALIDATION_FAILED", answer)


async def a_wrong_variable_is_reported(scene: Scene) -> None:
    answer = await scene.member.execute(READ, slot=["not", "an", "id"])
    expect(first_code(answer) == "BAD_USER_INPUT", answer)


async def a_missing_sign_in_is_reported(scene: Scene) -> None:
    answer = await scene.anonymous.execute("query { myTeams { name } }")
    expect(first_code(answer) == "UNAUTHENTICATED", answer)


async def an_anonymous_client_reads_public_data(scene: Scene) -> None:
    answer = await scene.anonymous.execute(READ, slot=scene.slot_id)
    expect(answer["data"]["slot"]["title"] == "A slot", answer)


async def a_bad_token_is_reported(scene: Scene) -> None:
    answer = await scene.impostor.execute("query { myTeams { name } }")
    expect(first_code(answer) == "UNAUTHENTICATED" or answer.get("closed") == 4403, answer)


async def a_subscription_starts_with_the_current_state(scene: Scene) -> None:
    scene.subscription_id = await scene.member.subscribe(WATCH, slots=[scene.slot_id])
    told = await scene.member.next(scene.subscription_id)
    expect(told["data"]["slotAvailability"]["remaining"] == 4, told)


async def a_subscription_receives_a_booking(scene: Scene) -> None:
    await scene.expect_version(await scene.change_slot())


async def a_refused_subscription_closes_no_other(scene: Scene) -> None:
    refused = await scene.member.subscribe("subscription { nothing }")
    answer = await scene.member.next(refused)
    expect(first_code(answer) == "GRAPHQL_VALIDATION_FAILED", answer)
    await scene.expect_version(await scene.change_slot())


async def a_failed_subscription_is_reported(scene: Scene) -> None:
    failed = await scene.member.subscribe(WATCH, slots=[])
    answer = await scene.member.next(failed)
    expect(first_code(answer) == "BAD_USER_INPUT", answer)
    await scene.expect_version(await scene.change_slot())


async def unsubscribing_ends_it_at_the_server(scene: Scene) -> None:
    before = await scene.active_subscriptions()
    second = await scene.member.subscribe("subscription { myBookings { booking { id } } }")
    await _wait_for_subscriptions(scene, before + 1)
    await scene.member.unsubscribe(second)
    await _wait_for_subscriptions(scene, before)


async def _wait_for_subscriptions(scene: Scene, expected: float) -> None:
    deadline = time.monotonic() + RESPONSE_TIMEOUT_S
    while (found := await scene.active_subscriptions()) != expected:
        if time.monotonic() > deadline:
            raise ClientCheckError(f"the server counts {found:g} subscriptions, not {expected:g}")
        await asyncio.sleep(0.02)


async def it_reconnects_after_a_kill(scene: Scene) -> None:
    await asyncio.to_thread(scene.app.kill)
    await asyncio.to_thread(scene.app.start)
    await scene.expect_version(await scene.change_slot())


async def it_reconnects_after_a_stop(scene: Scene) -> None:
    await asyncio.to_thread(scene.app.stop)
    await asyncio.to_thread(scene.app.start)
    await scene.expect_version(await scene.change_slot())


async def it_still_queries(scene: Scene) -> None:
    answer = await scene.member.execute(READ, slot=scene.slot_id)
    expect(answer.get("data") is not None and answer["data"]["slot"] is not None, answer)


CHECKS: dict[str, Callable[[Scene], Awaitable[None]]] = {
    check.__name__.replace("_", " "): check
    for check in (
        a_query_answers,
        a_query_takes_variables,
        a_mutation_answers,
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
        unsubscribing_ends_it_at_the_server,
        it_reconnects_after_a_kill,
        it_reconnects_after_a_stop,
        it_still_queries,
    )
}
