"""The caller's tickets of the last 24 hours, newest first, of whatever partition."""

from collections.abc import Iterator

import pytest

from slotlock.devserver.embedded import EmbeddedServers
from slotlock.domain.admission.tickets import TICKET_TTL
from slotlock.domain.booking.booking import SlotId
from slotlock.infrastructure.mongo.ids import new_slot_id
from slotlock.infrastructure.mongo.slots.change_set import ChangeSet, check_written
from slotlock.infrastructure.redis.admission import ticket_index
from slotlock.infrastructure.redis.keys import ticket_index_key
from slotlock.services.admission.enqueue import request_booking
from slotlock.services.admission.tickets import list_tickets
from slotlock.services.booking.book import BookingOptions
from slotlock.services.container import utc_now
from tests.support.domain.builders import build_slot
from tests.support.model.service_pair import ServicePair, open_service_pair
from tests.support.queue.deployment import (
    QueueClient,
    QueueDeployment,
    queue_deployment,
    queue_partition,
    with_own_redis_database,
)
from tests.support.queue.documents import MY_TICKETS

__all__ = ["queue_deployment"]


@pytest.fixture
def pair(servers: EmbeddedServers) -> Iterator[ServicePair]:
    """Return services with an adjustable clock and no admission worker."""
    with open_service_pair(with_own_redis_database(servers), "my-tickets") as opened:
        yield opened


async def test_the_tickets_of_the_caller_are_listed_newest_first_with_their_states(
    queue_deployment: QueueDeployment,
) -> None:
    apps = [queue_deployment.app(), queue_deployment.app()]
    slot_ids = [await queue_deployment.add_slot(apps[0], capacity=2) for _ in range(6)]
    assert len({queue_partition(slot_id) for slot_id in slot_ids}) > 1
    ada, ben = queue_deployment.queue_clients(apps[0], 2)
    await ben.enqueue(slot_ids[0])
    ids = [(await ada.enqueue(slot_id))["id"] for slot_id in slot_ids]
    again = await ada.enqueue(slot_ids[0])
    assert again["id"] == ids[0]
    await ada.cancel_ticket(ids[3])
    newest_first = ids[::-1]
    reader = QueueClient(queue_deployment.http, apps[1].url, ada.token)
    found = (await reader.fetch_own_tickets())["nodes"]
    assert [ticket["id"] for ticket in found] == newest_first
    assert found == [await ada.fetch_ticket(id_) for id_ in newest_first]
    assert {ticket["status"] for ticket in found} == {"QUEUED", "CANCELLED"}
    queue_deployment.worker()
    for id_ in (id_ for id_ in ids if id_ != ids[3]):
        assert await ada.wait_for_outcome_code(id_) == "Booked"
    found = (await reader.fetch_own_tickets())["nodes"]
    assert found == [await ada.fetch_ticket(id_) for id_ in newest_first]


async def test_the_list_has_pages(queue_deployment: QueueDeployment) -> None:
    app = queue_deployment.app()
    ada = queue_deployment.queue_client(app, 0)
    ids = [(await ada.enqueue(await queue_deployment.add_slot(app)))["id"] for _ in range(5)]
    seen, after = [], None
    for has_next in (True, True, False):
        page = await ada.fetch_own_tickets(first=2, after=after)
        seen += [ticket["id"] for ticket in page["nodes"]]
        after = page["pageInfo"]["endCursor"]
        assert page["pageInfo"]["hasNextPage"] is has_next
        assert page["totalCount"] == 5
    assert seen == ids[::-1]


async def test_a_request_that_is_sent_again_after_a_loss_is_listed_once(
    queue_deployment: QueueDeployment,
) -> None:
    app = queue_deployment.app()
    slot_id, ada = await queue_deployment.add_slot(app), queue_deployment.queue_client(app, 0)
    key = {"idempotencyKey": "the key"}
    lost = (await ada.enqueue(slot_id, **key))["id"]
    for name in queue_deployment.redis.scan_iter("slotlock:{queue:*"):
        queue_deployment.redis.delete(name)
    (ticket,) = (await ada.fetch_own_tickets())["nodes"]
    assert (ticket["id"], ticket["status"]) == (lost, "LOST")
    again = await ada.enqueue(slot_id, **key)
    (ticket,) = (await ada.fetch_own_tickets())["nodes"]
    assert (ticket["id"], ticket["status"]) == (again["id"], "QUEUED")


async def test_the_list_requires_a_token(queue_deployment: QueueDeployment) -> None:
    anonymous = QueueClient(queue_deployment.http, queue_deployment.app().url, None)
    assert await anonymous.error_code(MY_TICKETS) == "UNAUTHENTICATED"


def add_slot(pair: ServicePair) -> SlotId:
    """Insert a slot that starts in two days."""
    slot = build_slot(1, id=new_slot_id(), start=utc_now() + 2 * TICKET_TTL)
    change_set = ChangeSet((), new_slots=(slot,))
    assert check_written(pair.runner.run(pair.services[0].slot_writer.commit(change_set)))
    return slot.id


def test_tickets_are_listed_for_a_day_and_redis_forgets_the_list_afterwards(
    pair: ServicePair,
) -> None:
    pair.clock.now = utc_now()
    services, ada = pair.services[0], pair.callers[0]
    request = request_booking(services, ada, add_slot(pair), ada.user_id, BookingOptions())
    ticket = pair.runner.run(request).outcome
    for elapsed, expected in ((TICKET_TTL * 0.999, (ticket,)), (TICKET_TTL, ())):
        pair.clock.now = ticket.ref.requested_at + elapsed  # type: ignore[union-attr]
        assert pair.runner.run(list_tickets(services, ada, 10, None)).items == expected
    key = ticket_index_key(ada.user_id)
    ttl_ms = pair.runner.run(_send(pair, "PTTL", key))
    assert 0 < ttl_ms <= ticket_index.TTL_MS


async def _send(pair: ServicePair, *command: str) -> int:
    found: int = await pair.services[0].admission_queue.pipeline.send(*command)
    return found


def test_a_user_has_at_most_the_newest_thousand_tickets_in_the_list(
    pair: ServicePair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ticket_index, "MAX_TICKETS", 2)
    services, ada = pair.services[0], pair.callers[0]
    pair.clock.now = utc_now()
    refs = []
    for _ in range(3):
        slot_id = add_slot(pair)
        request = request_booking(services, ada, slot_id, ada.user_id, BookingOptions())
        refs.append(pair.runner.run(request).outcome.ref)  # type: ignore[union-attr]
        pair.clock.now += TICKET_TTL / 1000
    listed = pair.runner.run(list_tickets(services, ada, 10, None)).items
    assert [ticket.ref for ticket in listed] == refs[:0:-1]
