"""What each client is put through, in this order."""

import asyncio
import time
from collections.abc import Awaitable, Callable

from conformance.clients.remote import TOLD_WITHIN_S
from conformance.clients.scene import (
    BOOK,
    READ,
    WATCH,
    DisappointedError,
    Scene,
    expect,
    first_code,
)


async def a_query_answers(scene: Scene) -> None:
    answer = await scene.member.ask("query { me { name } }")
    expect(answer.get("data", {}).get("me", {}).get("name") == "Ada", answer)


async def a_query_takes_variables(scene: Scene) -> None:
    answer = await scene.member.ask(READ, slot=scene.slot)
    expect(answer["data"]["slot"]["remaining"] == 5, answer)


async def a_mutation_answers(scene: Scene) -> None:
    answer = await scene.member.ask(BOOK, slot=scene.slot)
    expect(answer["data"]["bookSlot"]["__typename"] == "Booked", answer)


async def a_refusal_is_data(scene: Scene) -> None:
    answer = await scene.member.ask(BOOK, slot=scene.slot)
    expect(not answer.get("errors"), answer)
    expect(answer["data"]["bookSlot"]["code"] == "ALREADY_BOOKED", answer)


async def an_invalid_document_is_told(scene: Scene) -> None:
    answer = await scene.member.ask("query { nothing }")
    expect(first_code(answer) == "GRAPHQL_VALIDATION_FAILED", answer)


async def a_wrong_variable_is_told(scene: Scene) -> None:
    answer = await scene.member.ask(READ, slot=["not", "an", "id"])
    expect(first_code(answer) == "BAD_USER_INPUT", answer)


async def who_is_nobody_is_told(scene: Scene) -> None:
    answer = await scene.nobody.ask("query { myTeams { name } }")
    expect(first_code(answer) == "UNAUTHENTICATED", answer)


async def nobody_reads_what_is_public(scene: Scene) -> None:
    answer = await scene.nobody.ask(READ, slot=scene.slot)
    expect(answer["data"]["slot"]["title"] == "A slot", answer)


async def a_bad_token_is_told(scene: Scene) -> None:
    answer = await scene.pretender.ask("query { myTeams { name } }")
    expect(first_code(answer) == "UNAUTHENTICATED" or answer.get("closed") == 4403, answer)


async def a_subscription_tells_the_present(scene: Scene) -> None:
    scene.watched = await scene.member.subscribe(WATCH, slots=[scene.slot])
    told = await scene.member.next(scene.watched)
    expect(told["data"]["slotAvailability"]["remaining"] == 4, told)


async def a_subscription_hears_of_a_booking(scene: Scene) -> None:
    await scene.hears(await scene.change())


async def a_subscription_that_is_refused_closes_no_other(scene: Scene) -> None:
    refused = await scene.member.subscribe("subscription { nothing }")
    answer = await scene.member.next(refused)
    expect(first_code(answer) == "GRAPHQL_VALIDATION_FAILED", answer)
    await scene.hears(await scene.change())


async def a_subscription_that_fails_is_told(scene: Scene) -> None:
    failed = await scene.member.subscribe(WATCH, slots=[])
    answer = await scene.member.next(failed)
    expect(first_code(answer) == "BAD_USER_INPUT", answer)
    await scene.hears(await scene.change())


async def who_ends_a_subscription_ends_it_at_the_server(scene: Scene) -> None:
    before = await scene.subscriptions()
    second = await scene.member.subscribe("subscription { myBookings { booking { id } } }")
    await _until(scene, before + 1)
    await scene.member.unsubscribe(second)
    await _until(scene, before)


async def _until(scene: Scene, wanted: float) -> None:
    deadline = time.monotonic() + TOLD_WITHIN_S
    while (found := await scene.subscriptions()) != wanted:
        if time.monotonic() > deadline:
            raise DisappointedError(f"the server counts {found:g} subscriptions, not {wanted:g}")
        await asyncio.sleep(0.02)


async def it_comes_back_to_a_server_that_was_killed(scene: Scene) -> None:
    await asyncio.to_thread(scene.app.kill)
    await asyncio.to_thread(scene.app.start)
    await scene.hears(await scene.change())


async def it_comes_back_to_a_server_that_was_stopped(scene: Scene) -> None:
    await asyncio.to_thread(scene.app.stop)
    await asyncio.to_thread(scene.app.start)
    await scene.hears(await scene.change())


async def it_goes_on_asking(scene: Scene) -> None:
    answer = await scene.member.ask(READ, slot=scene.slot)
    expect(answer.get("data") is not None and answer["data"]["slot"] is not None, answer)


CHECKS: dict[str, Callable[[Scene], Awaitable[None]]] = {
    check.__name__.replace("_", " "): check
    for check in (
        a_query_answers,
        a_query_takes_variables,
        a_mutation_answers,
        a_refusal_is_data,
        an_invalid_document_is_told,
        a_wrong_variable_is_told,
        who_is_nobody_is_told,
        nobody_reads_what_is_public,
        a_bad_token_is_told,
        a_subscription_tells_the_present,
        a_subscription_hears_of_a_booking,
        a_subscription_that_is_refused_closes_no_other,
        a_subscription_that_fails_is_told,
        who_ends_a_subscription_ends_it_at_the_server,
        it_comes_back_to_a_server_that_was_killed,
        it_comes_back_to_a_server_that_was_stopped,
        it_goes_on_asking,
    )
}
