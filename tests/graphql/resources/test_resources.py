"""Resources: rooms, teachers and equipment that several slots need, but one at a time."""

import secrets

import httpx
import pytest

from tests.support.apps.processes import AppProcess
from tests.support.clients.client import GraphQLTestClient, Json, slot_input
from tests.support.clients.series import MONDAY_TIMES
from tests.support.stores.users import create_user_tokens

CREATE = """mutation($name: String!, $kind: ResourceKind! = ROOM) {
  createResource(input: {name: $name, kind: $kind}) {
    ... on Resource { id name kind } ... on InvalidInput { fields { field message } }
  }
}"""
UPDATE = """mutation($id: ID!) { updateResource(input: {resourceId: $id, kind: STAFF}) {
  ... on Resource { id name kind } ... on Refusal { code }
} }"""
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
SLOT_RESOURCES = "query($slot: ID!) { slot(id: $slot) { resources { kind } } }"
AUDIT_LOG = """query($by: ID!) { auditLog(filter: {by: $by}) {
  nodes { action resourceName by { id } edits { field before after } }
} }"""
FREE_BUSY = """query($ids: [ID!]!, $from: DateTime!, $until: DateTime!) {
  freeBusy(resourceIds: $ids, from: $from, until: $until) {
    resource { name } spans { startTime endTime slot { id } } isComplete
  }
}"""


@pytest.fixture
def organizer(app: AppProcess, http: httpx.AsyncClient) -> GraphQLTestClient:
    return GraphQLTestClient(http, app.url, create_user_tokens(app.environment, 0).organizer)


@pytest.fixture
def member(app: AppProcess, http: httpx.AsyncClient) -> GraphQLTestClient:
    return GraphQLTestClient(http, app.url, create_user_tokens(app.environment, 1).members[0])


def new_name() -> str:
    """Return the name of no resource."""
    return f"Room {secrets.token_hex(4)}"


async def create(organizer: GraphQLTestClient, *names: str) -> list[str]:
    """Create rooms and return their ids."""
    return [(await organizer.execute(CREATE, name=name))["id"] for name in names]


async def create_slot(organizer: GraphQLTestClient, **fields: object) -> Json:
    slot: Json = await organizer.execute(CREATE_SLOT, input={**slot_input(), **fields})
    return slot


async def test_a_resource_is_created_found_changed_and_deleted(
    organizer: GraphQLTestClient,
) -> None:
    name = new_name()
    (room,) = await create(organizer, f" {name} ")
    shown = {"id": room, "name": name, "kind": "ROOM"}
    assert await organizer.execute(NODE, id=room) == shown
    assert (await organizer.execute(LIST, text=name[-8:].upper()))["nodes"] == [shown]
    assert await organizer.execute(UPDATE, id=room) == {**shown, "kind": "STAFF"}
    assert await organizer.execute(DELETE, id=room) == {"resourceId": room}
    assert await organizer.execute(DELETE, id=room) == {"code": "RESOURCE_NOT_FOUND"}
    assert await organizer.execute(UPDATE, id=room) == {"code": "RESOURCE_NOT_FOUND"}


async def test_the_audit_log_names_the_resource_and_the_organizer_of_each_change(
    organizer: GraphQLTestClient,
) -> None:
    one, imported = new_name(), new_name()
    (room,) = await create(organizer, one)
    for _ in range(2):
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
        entry("RESOURCE_CREATED", one, ("name", None, one), ("kind", None, "ROOM")),
        entry("RESOURCE_EDITED", one, ("kind", "ROOM", "STAFF")),
        entry("RESOURCE_DELETED", one, ("name", one, None), ("kind", "STAFF", None)),
        entry("RESOURCE_CREATED", imported, ("name", None, imported), ("kind", None, "ROOM")),
    ]


async def test_a_name_that_differs_in_capitals_only_is_refused(
    organizer: GraphQLTestClient,
) -> None:
    name = new_name()
    await create(organizer, name)
    for wrong in (name, name.upper(), "", " ", "x" * 101, "a\nb"):
        refused = await organizer.execute(CREATE, name=wrong)
        assert [each["field"] for each in refused["fields"]] == ["name"]


async def test_members_see_no_resources_but_those_of_slots(
    organizer: GraphQLTestClient, member: GraphQLTestClient
) -> None:
    (room,) = await create(organizer, new_name())
    assert await member.error_code(LIST) == "FORBIDDEN"
    assert await member.error_code(CREATE, name=new_name()) == "FORBIDDEN"
    assert await member.error_code(IMPORT, names=[]) == "FORBIDDEN"
    assert await member.error_code(UPDATE, id=room) == "FORBIDDEN"
    assert await member.error_code(DELETE, id=room) == "FORBIDDEN"
    assert await member.execute(NODE, id=room) is None
    slot_id = (await create_slot(organizer, resourceIds=[room]))["id"]
    shown = await member.execute(
        "query($s: ID!) { slot(id: $s) { resources { kind } } }", s=slot_id
    )
    assert shown == {"resources": [{"kind": "ROOM"}]}


async def test_an_import_creates_what_does_not_exist_and_a_dry_run_nothing(
    organizer: GraphQLTestClient,
) -> None:
    old, new = new_name(), new_name()
    await create(organizer, old)
    names = [old.upper(), new, f" {new} "]
    report = {"created": [{"name": new}], "existing": [{"name": old}]}
    assert await organizer.execute(IMPORT, names=names, dry=True) == report
    assert await organizer.execute(IMPORT, names=names) == report
    repeated = await organizer.execute(IMPORT, names=names)
    assert (repeated["created"], len(repeated["existing"])) == ([], 2)
    assert (await organizer.execute(IMPORT, names=[""]))["fields"] == [{"field": "names"}]


async def test_pages_of_resources_are_by_name(organizer: GraphQLTestClient) -> None:
    prefix = secrets.token_hex(4)
    await create(organizer, *(f"{prefix} {letter}" for letter in "cab"))
    first = await organizer.execute(LIST, text=prefix, first=2)
    assert [each["name"][-1] for each in first["nodes"]] == ["a", "b"]
    after = first["pageInfo"]["endCursor"]
    last = await organizer.execute(LIST, text=prefix, first=2, after=after)
    assert [each["name"][-1] for each in last["nodes"]] == ["c"]
    assert await organizer.error_code(LIST, after="x") == "BAD_USER_INPUT"


async def test_a_search_for_resources_ignores_accents_and_rejects_control_characters(
    organizer: GraphQLTestClient,
) -> None:
    name = f"Große Éc\u00f4le {secrets.token_hex(4)}"
    await create(organizer, name)
    found = await organizer.execute(LIST, text=name.upper().replace("\u00d4", "o"))
    assert [each["name"] for each in found["nodes"]] == [name]
    assert await organizer.error_code(LIST, text="a\0") == "BAD_USER_INPUT"


async def test_every_page_says_how_many_resources_match(organizer: GraphQLTestClient) -> None:
    prefix = secrets.token_hex(4)
    await create(organizer, *(f"{prefix} {letter}" for letter in "abc"))
    await organizer.execute(CREATE, name=f"{prefix} d", kind="OTHER")
    first = await organizer.execute(LIST, text=prefix, first=3)
    last = await organizer.execute(LIST, text=prefix, first=3, after=first["pageInfo"]["endCursor"])
    assert [page["totalCount"] for page in (first, last)] == [4, 4]
    for kind, count in (("ROOM", 3), ("OTHER", 1), ("STAFF", 0)):
        assert (await organizer.execute(LIST, text=prefix, kind=kind))["totalCount"] == count


async def test_a_typo_is_no_new_resource(organizer: GraphQLTestClient) -> None:
    name = new_name()
    await create(organizer, name)
    refused = await create_slot(organizer, resource=name.replace("Room", "Roam"))
    (problem,) = refused["fields"]
    assert (problem["field"], name in problem["message"]) == ("resource", True)
    assert (await create_slot(organizer, resource=name.lower()))["resource"] == name


async def test_an_unknown_resource_is_the_same_refusal_by_name_and_by_id(
    organizer: GraphQLTestClient,
) -> None:
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


async def test_slots_with_one_common_resource_of_several_never_overlap(
    organizer: GraphQLTestClient,
) -> None:
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


async def test_a_resource_of_a_slot_that_is_not_over_is_not_deleted(
    organizer: GraphQLTestClient,
) -> None:
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
    organizer: GraphQLTestClient,
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


async def test_a_past_draft_of_a_deleted_resource_is_not_published(
    organizer: GraphQLTestClient,
) -> None:
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


async def test_free_busy_lists_the_meetings_of_each_resource(organizer: GraphQLTestClient) -> None:
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
    app: AppProcess, organizer: GraphQLTestClient, http: httpx.AsyncClient
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
