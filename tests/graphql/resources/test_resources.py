"""Resources: rooms, teachers and equipment that several slots need, but one at a time."""

import secrets
from pathlib import Path

import httpx

from tests.support.apps.fork_server import forked_app
from tests.support.apps.processes import AppProcess
from tests.support.clients.booking_client import BookingClient, create_booking_clients
from tests.support.clients.client import GraphQLTestClient, Json, slot_input
from tests.support.clients.series import MONDAY_TIMES

CREATE = """mutation($name: String!, $kind: ResourceKind! = ROOM) {
  createResource(input: {name: $name, kind: $kind}) {
    ... on Resource { id name kind } ... on InvalidInput { fields { field message } }
  }
}"""
UPDATE = """mutation($id: ID!) { updateResource(input: {resourceId: $id, kind: STAFF}) {
  ... on Resource { id name kind } ... on Refusal { code }
} }"""
RENAME = """mutation($id: ID!, $name: String!) {
  updateResource(input: {resourceId: $id, name: $name}) {
    ... on Resource { id name kind } ... on Refusal { code }
    ... on InvalidInput { fields { field } }
  }
}"""
DELETE = """mutation($id: ID!) { deleteResource(resourceId: $id) {
  ... on ResourceDeleted { resourceId } ... on ResourceInUse { code slotIds }
  ... on ResourceNotFound { code }
} }"""
IMPORT = """mutation($names: [String!]!, $dry: Boolean! = false) {
  importResources(names: $names, kind: ROOM, dryRun: $dry) {
    ... on ResourcesImported { created { name } existing { name } }
    ... on InvalidInput { fields { field } }
  }
}"""
LIST = """query($text: String, $kind: ResourceKind, $first: Int! = 20, $after: String) {
  resources(text: $text, kind: $kind, first: $first, after: $after) {
    totalCount nodes { id name kind } pageInfo { hasNextPage endCursor }
  }
}"""
NODE = "query($id: ID!) { node(id: $id) { ... on Resource { id name kind } } }"
CREATE_SLOT = """mutation($input: CreateSlotInput!) { createSlot(input: $input) {
  __typename ... on Slot { id resource resources { id name kind } }
  ... on InvalidInput { fields { field message } } ... on ResourceTaken { resourceName }
} }"""
UPDATE_SLOT = """mutation($input: UpdateSlotInput!) { updateSlot(input: $input) {
  __typename ... on Slot { resource resources { name } }
  ... on InvalidInput { fields { field message } }
} }"""
CREATE_SERIES = """mutation($input: CreateSlotSeriesInput!) { createSlotSeries(input: $input) {
  __typename ... on InvalidInput { fields { field } }
} }"""
PUBLISH_SLOT = """mutation($slot: ID!) { publishSlot(slotId: $slot) {
  __typename ... on InvalidInput { fields { field message } }
} }"""
PAST = {"startTime": "2024-03-18T09:00:00Z", "endTime": "2024-03-18T10:00:00Z"}
FUTURE = {"startTime": "2031-03-18T09:00:00Z", "endTime": "2031-03-18T10:00:00Z"}
SLOT_RESOURCE_NAMES = "query($slot: ID!) { slot(id: $slot) { resources { name } } }"
SLOT_RESOURCES = "query($slot: ID!) { slot(id: $slot) { resources { kind } } }"
AUDIT_LOG = """query($by: ID!) { auditLog(filter: {by: $by}) {
  nodes { action resourceName by { id } edits { field before after } }
} }"""
FREE_BUSY = """query($ids: [ID!]!, $from: DateTime!, $until: DateTime!) {
  freeBusy(resourceIds: $ids, from: $from, until: $until) {
    resource { name } spans { startTime endTime slot { id } } isComplete
  }
}"""


def new_name() -> str:
    """Return the name of no resource."""
    return f"Room {secrets.token_hex(4)}"


async def create(organizer: GraphQLTestClient, *names: str) -> list[str]:
    """Create rooms and return their ids."""
    return [(await organizer.execute(CREATE, name=name))["id"] for name in names]


async def create_slot(organizer: GraphQLTestClient, **fields: object) -> Json:
    slot: Json = await organizer.execute(CREATE_SLOT, input={**slot_input(), **fields})
    return slot


async def test_a_resource_is_created_found_changed_and_deleted(organizer: BookingClient) -> None:
    name = new_name()
    (room,) = await create(organizer, f" {name} ")
    shown = {"id": room, "name": name, "kind": "ROOM"}
    assert await organizer.execute(NODE, id=room) == shown
    assert (await organizer.execute(LIST, text=name[-8:].upper()))["nodes"] == [shown]
    assert await organizer.execute(UPDATE, id=room) == {**shown, "kind": "STAFF"}
    assert await organizer.execute(DELETE, id=room) == {"resourceId": room}
    assert await organizer.execute(DELETE, id=room) == {"code": "RESOURCE_NOT_FOUND"}
    assert await organizer.execute(UPDATE, id=room) == {"code": "RESOURCE_NOT_FOUND"}


async def test_a_renamed_resource_has_its_new_name_everywhere_and_its_old_id_finds_it(
    app: AppProcess, organizer: BookingClient, http: httpx.AsyncClient
) -> None:
    names = [new_name(), f"$new {new_name()}"]
    room, beamer = await create(organizer, names[0], new_name())
    start = slot_input()["startTime"]
    one = await create_slot(organizer, resourceIds=[room])
    two = await create_slot(organizer, resourceIds=[beamer, room], draft=True)
    past = await create_slot(organizer, resourceIds=[room], allowPast=True, **PAST)
    before = await organizer.fetch_slot(one["id"])
    renamed = await organizer.execute(RENAME, id=room, name=f" {names[1]} ")
    assert (renamed["name"], renamed["kind"]) == (names[1], "ROOM")
    for slot in (one, two, past):
        shown = await organizer.execute(SLOT_RESOURCE_NAMES, slot=slot["id"])
        assert names[1] in [each["name"] for each in shown["resources"]]
        assert len(shown["resources"]) == len(slot["resources"])
    assert (await organizer.fetch_slot(one["id"]))["version"] == before["version"] + 1
    for id_ in (room, renamed["id"]):
        assert await organizer.execute(NODE, id=id_) == renamed
        calendar = await http.get(f"{app.url}/calendars/resources/{id_}.ics")
        assert (calendar.status_code, calendar.text.count("BEGIN:VEVENT")) == (200, 1)
    taken = await create_slot(organizer, resourceIds=[room], startTime=start)
    assert taken == {"__typename": "ResourceTaken", "resourceName": names[1]}
    # Another resource may have the old name now; the old id is its id.
    assert (await create(organizer, names[0])) == [room]
    assert (await organizer.execute(NODE, id=room))["name"] == names[0]
    assert (await create_slot(organizer, resourceIds=[room]))["resource"] == names[0]


async def test_a_name_that_another_resource_has_is_refused_and_new_capitals_are_not(
    organizer: BookingClient,
) -> None:
    name, other = new_name(), new_name()
    room, _ = await create(organizer, name, other)
    for wrong in (other, other.upper(), "", " ", "x" * 101, "a\nb"):
        refused = await organizer.execute(RENAME, id=room, name=wrong)
        assert refused["fields"] == [{"field": "name"}]
    assert (await organizer.execute(RENAME, id=room, name=name.upper()))["name"] == name.upper()
    assert (await organizer.execute(RENAME, id="none", name=name))["code"] == "RESOURCE_NOT_FOUND"


async def test_the_audit_log_names_the_resource_and_the_organizer_of_each_change(
    organizer: BookingClient,
) -> None:
    old, one, imported = new_name(), new_name(), new_name()
    (room,) = await create(organizer, old)
    for _ in range(2):
        await organizer.execute(RENAME, id=room, name=one)
        await organizer.execute(UPDATE, id=room)
        await organizer.execute(DELETE, id=room)
        await organizer.execute(IMPORT, names=[imported])
    me = (await organizer.execute("{ me { id } }"))["id"]
    entries = (await organizer.execute(AUDIT_LOG, by=me))["nodes"]
    assert all(entry.pop("by") == {"id": me} for entry in entries)

    def entry(action: str, name: str, *edits: tuple[str, str | None, str | None]) -> Json:
        changed = [dict(zip(("field", "before", "after"), edit, strict=True)) for edit in edits]
        return {"action": action, "resourceName": name, "edits": changed}

    assert entries[::-1] == [
        entry("RESOURCE_CREATED", old, ("name", None, old), ("kind", None, "ROOM")),
        entry("RESOURCE_EDITED", one, ("name", old, one)),
        entry("RESOURCE_EDITED", one, ("kind", "ROOM", "STAFF")),
        entry("RESOURCE_DELETED", one, ("name", one, None), ("kind", "STAFF", None)),
        entry("RESOURCE_CREATED", imported, ("name", None, imported), ("kind", None, "ROOM")),
    ]


async def test_a_name_that_differs_in_capitals_only_is_refused(organizer: BookingClient) -> None:
    name = new_name()
    await create(organizer, name)
    for wrong in (name, name.upper(), "", " ", "x" * 101, "a\nb"):
        refused = await organizer.execute(CREATE, name=wrong)
        assert [each["field"] for each in refused["fields"]] == ["name"]


async def test_members_see_no_resources_but_those_of_slots(
    organizer: BookingClient, member: BookingClient
) -> None:
    (room,) = await create(organizer, new_name())
    assert await member.error_code(LIST) == "FORBIDDEN"
    assert await member.error_code(CREATE, name=new_name()) == "FORBIDDEN"
    assert await member.error_code(IMPORT, names=[]) == "FORBIDDEN"
    assert await member.error_code(UPDATE, id=room) == "FORBIDDEN"
    assert await member.error_code(DELETE, id=room) == "FORBIDDEN"
    assert await member.execute(NODE, id=room) is None
    slot_id = (await create_slot(organizer, resourceIds=[room]))["id"]
    shown = await member.execute(SLOT_RESOURCES, slot=slot_id)
    assert shown == {"resources": [{"kind": "ROOM"}]}


async def test_an_import_creates_new_ones_and_a_dry_run_nothing(organizer: BookingClient) -> None:
    old, new = new_name(), new_name()
    await create(organizer, old)
    names = [old.upper(), new, f" {new} "]
    report = {"created": [{"name": new}], "existing": [{"name": old}]}
    assert await organizer.execute(IMPORT, names=names, dry=True) == report
    assert await organizer.execute(IMPORT, names=names) == report
    repeated = await organizer.execute(IMPORT, names=names)
    assert (repeated["created"], len(repeated["existing"])) == ([], 2)
    assert (await organizer.execute(IMPORT, names=[""]))["fields"] == [{"field": "names"}]


async def test_a_search_for_resources_ignores_accents_and_rejects_control_characters(
    organizer: BookingClient,
) -> None:
    name = f"Große Éc\u00f4le {secrets.token_hex(4)}"
    await create(organizer, name)
    found = await organizer.execute(LIST, text=name.upper().replace("\u00d4", "o"))
    assert [each["name"] for each in found["nodes"]] == [name]
    assert await organizer.error_code(LIST, text="a\0") == "BAD_USER_INPUT"


async def test_pages_of_resources_are_by_name_and_count_all(organizer: BookingClient) -> None:
    prefix = secrets.token_hex(4)
    await create(organizer, *(f"{prefix} {letter}" for letter in "cab"))
    await organizer.execute(CREATE, name=f"{prefix} d", kind="OTHER")
    first = await organizer.execute(LIST, text=prefix, first=3)
    last = await organizer.execute(LIST, text=prefix, first=3, after=first["pageInfo"]["endCursor"])
    assert [page["totalCount"] for page in (first, last)] == [4, 4]
    assert [each["name"][-1] for page in (first, last) for each in page["nodes"]] == [*"abcd"]
    assert await organizer.error_code(LIST, after="x") == "BAD_USER_INPUT"
    for kind, count in (("ROOM", 3), ("OTHER", 1), ("STAFF", 0)):
        assert (await organizer.execute(LIST, text=prefix, kind=kind))["totalCount"] == count


async def test_a_typo_is_no_new_resource(organizer: BookingClient) -> None:
    name = new_name()
    await create(organizer, name)
    refused = await create_slot(organizer, resource=name.replace("Room", "Roam"))
    (problem,) = refused["fields"]
    assert (problem["field"], name in problem["message"]) == ("resource", True)
    assert (await create_slot(organizer, resource=name.lower()))["resource"] == name


async def test_unknown_resources_are_one_refusal_by_name_and_id(organizer: BookingClient) -> None:
    name, deleted_name = new_name(), new_name()
    room, deleted = await create(organizer, name, deleted_name)
    await organizer.execute(DELETE, id=deleted)
    slot_id = (await create_slot(organizer))["id"]
    for field, value in [
        ("resource", deleted_name),
        ("resourceIds", [deleted]),
        ("resourceIds", [room, deleted]),
        ("resourceIds", [room, "no id"]),
    ]:
        refused = [
            await create_slot(organizer, **{field: value}),
            await organizer.execute(UPDATE_SLOT, input={"slotId": slot_id, field: value}),
            await organizer.execute(
                CREATE_SERIES,
                input={"slot": {**slot_input(), field: value}, "rrule": "FREQ=DAILY;COUNT=2"},
            ),
        ]
        for each in refused:
            assert each["__typename"] == "InvalidInput"
            assert [problem["field"] for problem in each["fields"]] == [field]
    updated = await organizer.execute(UPDATE_SLOT, input={"slotId": slot_id, "resourceIds": [room]})
    assert (updated["resource"], updated["resources"]) == (name, [{"name": name}])


async def test_slots_with_a_common_resource_never_overlap(organizer: BookingClient) -> None:
    names = [new_name() for _ in range(3)]
    room, teacher, beamer = await create(organizer, *names)
    made = await create_slot(organizer, resourceIds=[room, teacher, room])
    assert made["resource"] == names[0]
    assert [each["name"] for each in made["resources"]] == names[:2]
    for common in ([teacher], [beamer, teacher], [room]):
        taken = await create_slot(organizer, resourceIds=common)
        assert taken["__typename"] == "ResourceTaken"
    taken = await create_slot(organizer, resource=names[1])
    assert taken == {"__typename": "ResourceTaken", "resourceName": names[1]}
    other = (await create_slot(organizer, resourceIds=[beamer]))["id"]
    change = {"slotId": other, "resourceIds": [beamer, teacher]}
    assert (await organizer.execute(UPDATE_SLOT, input=change))["__typename"] == "ResourceTaken"
    change = {"slotId": made["id"], "resourceIds": [room]}
    edited = await organizer.execute(UPDATE_SLOT, input=change)
    assert edited["resources"] == [{"name": names[0]}]
    assert (await create_slot(organizer, resource=names[1]))["__typename"] == "Slot"


async def test_a_resource_of_a_slot_not_yet_over_is_not_deleted(organizer: BookingClient) -> None:
    names = [new_name(), new_name()]
    room, beamer = await create(organizer, *names)
    slot_id = (await create_slot(organizer, resourceIds=[room, beamer], draft=True))["id"]
    refused = await organizer.execute(DELETE, id=beamer)
    assert refused == {"code": "RESOURCE_IN_USE", "slotIds": [slot_id]}
    await organizer.execute(UPDATE_SLOT, input={"slotId": slot_id, "resource": names[0]})
    assert await organizer.execute(DELETE, id=beamer) == {"resourceId": beamer}
    refused = await create_slot(organizer, resourceIds=[room, beamer])
    assert refused["fields"][0]["field"] == "resourceIds"


async def test_a_past_slot_of_a_deleted_resource_moves_to_the_future_only_without_it(
    organizer: BookingClient,
) -> None:
    name = new_name()
    (room,) = await create(organizer, name)
    slot = await create_slot(organizer, resource=name, allowPast=True, **PAST)
    assert await organizer.execute(DELETE, id=room) == {"resourceId": room}
    moved = {"slotId": slot["id"], **FUTURE}
    assert (await organizer.execute(UPDATE_SLOT, input={"slotId": slot["id"], "title": "Old"}))[
        "resource"
    ] == name
    refused = await organizer.execute(UPDATE_SLOT, input=moved)
    assert [each["field"] for each in refused["fields"]] == ["resource"]
    assert name in refused["fields"][0]["message"]
    assert await organizer.execute(NODE, id=room) is None
    assert await organizer.execute(UPDATE_SLOT, input={**moved, "resource": None}) == {
        "__typename": "Slot",
        "resource": None,
        "resources": [],
    }


async def test_past_drafts_of_a_deleted_resource_stay_drafts(organizer: BookingClient) -> None:
    names = [new_name(), new_name()]
    room, beamer = await create(organizer, *names)
    fields = {"resourceIds": [room, beamer], "draft": True, "allowPast": True, **PAST}
    slot = await create_slot(organizer, **fields)
    assert await organizer.execute(DELETE, id=beamer) == {"resourceId": beamer}
    refused = await organizer.execute(PUBLISH_SLOT, slot=slot["id"])
    assert [each["field"] for each in refused["fields"]] == ["resourceIds"]
    assert names[1] in refused["fields"][0]["message"]
    assert await organizer.execute(NODE, id=beamer) is None
    assert (await create(organizer, names[1])) == [beamer]
    published = await organizer.execute(PUBLISH_SLOT, slot=slot["id"])
    assert published["__typename"] == "Slot"


async def test_free_busy_lists_the_meetings_of_each_resource(organizer: BookingClient) -> None:
    names = [new_name(), new_name()]
    room, beamer = await create(organizer, *names)
    slot = await create_slot(organizer, resourceIds=[room, beamer], **MONDAY_TIMES)
    await create_slot(organizer, resourceIds=[room], draft=True, **MONDAY_TIMES)
    period = {"from": "2031-03-17T08:30:00Z", "until": "2031-03-18T00:00:00Z"}
    span = {
        "startTime": "2031-03-17T08:00:00.000Z",
        "endTime": "2031-03-17T09:00:00.000Z",
        "slot": {"id": slot["id"]},
    }
    found = await organizer.execute(FREE_BUSY, ids=[beamer, room], **period)
    assert [each["resource"]["name"] for each in found] == names[::-1]
    assert [len(each["spans"]) for each in found] == [1, 1]
    assert found[0]["spans"][0]["slot"] == span["slot"]
    assert found[0]["isComplete"]
    period["from"] = "2031-03-17T09:00:00Z"
    assert (await organizer.execute(FREE_BUSY, ids=[room], **period))[0]["spans"] == []
    period["from"] = "2030-03-17T09:00:00Z"
    assert await organizer.error_code(FREE_BUSY, ids=[room], **period) == "BAD_USER_INPUT"


async def test_the_calendar_of_a_resource_has_its_slots_and_names_it_as_their_location(
    app: AppProcess, organizer: BookingClient, http: httpx.AsyncClient
) -> None:
    names = [new_name(), new_name()]
    room, beamer = await create(organizer, *names)
    title = secrets.token_hex(8)
    await create_slot(organizer, resourceIds=[room, beamer], title=title)
    await create_slot(organizer, title="elsewhere")
    response = await http.get(f"{app.url}/calendars/resources/{beamer}.ics")
    text = response.text.replace("\r\n ", "")
    assert (response.status_code, text.count("BEGIN:VEVENT")) == (200, 1)
    assert f"SUMMARY:{title}" in text
    assert f"LOCATION:{names[0]}\\, {names[1]}" in text
    assert (await http.get(f"{app.url}/calendars/resources/none.ics")).status_code == 404


async def test_the_calendars_of_resources_can_be_for_organizers_only(
    app: AppProcess, organizer: BookingClient, http: httpx.AsyncClient, log_dir: Path
) -> None:
    (room,) = await create(organizer, new_name())
    feeds = "mutation { createCalendarFeed { url } }"
    settings = {**app.environment, "SLOTLOCK_PUBLIC_RESOURCE_CALENDARS": "false"}
    (member,), _ = create_booking_clients(http, 1, app)
    with forked_app(settings, log_dir / "private") as private_app:
        path, url = f"/resources/{room}.ics", private_app.url

        async def status(address: str, client: BookingClient | None = None) -> int:
            return (await http.get(address, headers=client.headers if client else {})).status_code

        assert await status(f"{url}/calendars{path}") == 404
        assert await status(f"{url}/calendars{path}", member) == 404
        assert await status(f"{url}/calendars{path}", organizer) == 200
        for client, expected in ((organizer, 200), (member, 404)):
            feed = (await client.execute(feeds))["url"].removesuffix(".ics")
            assert await status(f"{url}{feed}{path}") == expected
