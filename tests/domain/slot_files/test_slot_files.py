"""Courses from a file: what its cells mean, what it changes, and which problems it has."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slotlock.api.endpoints.csv_files import csv_header, csv_line
from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.slot import SlotKind, SlotStatus
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.campaigns.terms import CampaignId, CampaignTerms, GroupLimit
from slotlock.domain.reports.export_formats import CsvSeparator, ExportLanguage
from slotlock.domain.resources.resource import Resource, ResourceKind
from slotlock.domain.schedule.meetings import Meeting
from slotlock.domain.schedule.periods import Period
from slotlock.domain.schedule.timetables import Weekday
from slotlock.domain.schedule.zones import to_local_time
from slotlock.domain.shared.tables.file_problems import InvalidFile
from slotlock.domain.slot_files.cells import write_cells
from slotlock.domain.slot_files.columns import COLUMNS, columns_of, headers_in
from slotlock.domain.slot_files.plan import (
    CampaignSlots,
    ImportOptions,
    SlotFilePlan,
    conflict_problems,
)
from slotlock.domain.slot_files.planning import plan_slot_file
from slotlock.domain.slot_files.problems import SlotFileProblem
from slotlock.domain.slot_files.slot_file import MAX_ROWS, SlotFile, parse_slot_file
from slotlock.domain.slot_files.times import (
    DateOrder,
    WeeklyCell,
    find_date_order,
    read_date,
    read_dates,
    read_time,
    read_weekly,
)
from tests.support.domain.builders import NOW, book_users, build_slot, with_facts

TERMS = CampaignTerms(CampaignId("c"), 1, False, NOW, NOW + timedelta(days=30))
VOGEL = Resource("Ms. Vogel", ResourceKind.STAFF)
ROOM = Resource("201", ResourceKind.ROOM)
BEAMER = Resource("Beamer", ResourceKind.EQUIPMENT)
RESOURCES = {each.name: each for each in (VOGEL, ROOM, BEAMER)}
# Tuesdays and Thursdays in Berlin, which changes its clocks on October 27.
HEADER = "number,title,first_day,last_day,weekly,start_time,end_time,places\n"
CHESS = "K1,Chess,2030-09-03,2030-12-20,Tue; Thu,13:30,15:00,12\n"


def campaign_of(*states: SlotState, **values: object) -> CampaignSlots:
    """Return a campaign with these slots and three resources."""
    slots = {state.id: with_facts(state, terms=TERMS) for state in states}
    return replace(
        CampaignSlots(TERMS, slots, {}, RESOURCES, tuple(RESOURCES)),
        **values,  # type: ignore[arg-type]
    )


def plan(
    text: str | bytes,
    campaign: CampaignSlots | None = None,
    *,
    creates_resources: bool = False,
    periods: tuple[Period, ...] = (),
) -> SlotFilePlan | InvalidFile:
    """Plan the import of a text into a campaign, which is empty unless given."""
    file = parse_slot_file(text if isinstance(text, bytes) else text.encode(), periods)
    if isinstance(file, InvalidFile):
        return file
    numbers = count()
    options = ImportOptions("Europe/Berlin", creates_resources)
    return plan_slot_file(
        file, campaign or campaign_of(), options, NOW, lambda: SlotId(f"new{next(numbers)}")
    )


def planned(
    text: str | bytes,
    campaign: CampaignSlots | None = None,
    periods: tuple[Period, ...] = (),
) -> SlotFilePlan:
    """Return a plan without problems."""
    made = plan(text, campaign, periods=periods)
    assert isinstance(made, SlotFilePlan), made
    return made


def codes(
    text: str, campaign: CampaignSlots | None = None, periods: tuple[Period, ...] = ()
) -> list[tuple[tuple[int, ...], str | None, str]]:
    """Return the lines, the column and the code of each problem."""
    found = plan(text, campaign, periods=periods)
    assert isinstance(found, InvalidFile), found
    return [(each.lines, each.column, each.code) for each in found.problems]


def states_of(made: SlotFilePlan) -> dict[SlotId, SlotState]:
    return {**made.edited, **{state.id: state for state in made.created}}


def export(campaign: CampaignSlots) -> list[dict[str, str]]:
    return [
        write_cells(each.slot, campaign.descriptions.get(each.id), campaign.resources)
        for each in campaign.slots.values()
    ]


def write(rows: list[dict[str, str]], separator: CsvSeparator = CsvSeparator.COMMA) -> bytes:
    lines = [csv_line([row[column] for column in COLUMNS], separator) for row in rows]
    return "".join((csv_header(COLUMNS, separator), *lines)).encode()


def local(state: SlotState) -> list[tuple[str, str]]:
    """Return the local times of the meetings."""
    return [
        (f"{to_local_time(each.start, state.slot.time_zone):%m-%d %H:%M}",
         f"{to_local_time(each.end, state.slot.time_zone):%H:%M}")
        for each in state.slot.all_meetings
    ]  # fmt: skip


def test_a_new_course_is_a_draft_with_the_terms_of_the_campaign() -> None:
    (state,) = planned(HEADER + CHESS).created
    slot = state.slot
    assert (slot.number, slot.title, slot.capacity) == ("K1", "Chess", 12)
    assert (slot.status, slot.kind, slot.terms) == (SlotStatus.DRAFT, SlotKind.COURSE, TERMS)
    assert len(slot.meetings) == 32
    assert {times for _, times in local(state)} == {"15:00"}


@pytest.mark.parametrize("language", ExportLanguage)
def test_an_export_has_headers_that_an_import_knows(language: ExportLanguage) -> None:
    assert columns_of(headers_in(language)) == list(COLUMNS)
    assert columns_of(["Kurs-Nr.", "課程名稱", "TIME ZONE", "Lehrer/in", "x"]) == [
        *("number", "title", "time_zone", "teacher", None),
    ]


@pytest.mark.parametrize("encoding", ["cp1252", "gb18030", "utf-16", "utf-8-sig"])
def test_the_files_of_schools_are_read_as_they_come(encoding: str) -> None:
    title = "象棋" if encoding == "gb18030" else "Schach für Anfänger"
    header = "编号,课程,日期,开始时间,结束时间,名额"
    if encoding == "cp1252":
        header = "Nummer,Kurs,Datum,Startzeit,Endzeit,Plätze"
    text = f"{header}\r\n0012,{title},3.9.2030,9:00,9.45 Uhr,5\r\n"
    (state,) = planned(text.encode(encoding)).created
    assert (state.slot.number, state.slot.title) == ("0012", title)
    assert local(state) == [("09-03 09:00", "09:45")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        *(
            (text, date(2030, 9, 3))
            for text in (
                *("2030-09-03", "2030-9-3", "2030/9/3", "3.9.2030", "03.09.30", "3. 9. 2030"),
                *("2030年9月3日", "2030 年 9 月 3 日", "2030-09-03 00:00:00", "47729", "47729,0"),
            )
        ),
        ("29.2.2030", "INVALID_DATE"),
        ("September", "INVALID_DATE"),
        ("3.9.", "INVALID_DATE"),
        ("3/9/2030", "AMBIGUOUS_DATE"),
        ("9/9/2030", date(2030, 9, 9)),
    ],
)
def test_dates_are_read_as_users_and_spreadsheets_write_them(
    text: str, expected: date | str
) -> None:
    found = read_date(text, DateOrder.UNKNOWN)
    assert (found if isinstance(found, date) else found.code.name) == expected


def test_one_date_of_a_file_says_whether_the_day_or_the_month_is_first() -> None:
    for other, expected in (("25/9/2030", date(2030, 9, 3)), ("9/25/2030", date(2030, 3, 9))):
        assert read_date("3/9/2030", find_date_order(["", other, "3/9/2030"])) == expected
    assert find_date_order(["25/9/2030; 9/25/2030"]) is DateOrder.UNKNOWN
    days = [date(2030, 1, 1) + timedelta(days=7 * week) for week in range(100)]
    assert read_dates("; ".join(map(str, days)), DateOrder.UNKNOWN) == tuple(days)
    dates = "number,title,first_day,start_time,end_time,places\n1,A,3/9/2030,9:00,10:00,1\n"
    assert codes(dates) == [((2,), "first_day", "AMBIGUOUS_DATE")]
    (first, _) = planned(f"{dates}2,B,25/9/2030,9:00,10:00,1\n").created
    assert local(first) == [("09-03 09:00", "10:00")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        *((text, time(13, 30)) for text in ("13:30", "13.30 Uhr", "13h30", "1:30 PM", "13:30:00")),
        *((text, time(13, 30)) for text in ("0.5625", "0,5625", "13\uff1a30")),
        *((text, time(0)) for text in ("0:00", "24:00", "12 am")),
        *((text, time(12)) for text in ("12", "0.5", "12 pm")),
        *((text, None) for text in ("25:00", "13:60", "24:30", "13 pm", "1330", "noon")),
    ],
)
def test_times_are_read_as_users_and_spreadsheets_write_them(
    text: str, expected: time | None
) -> None:
    found = read_time(text)
    assert (found if isinstance(found, time) else None) == expected


@pytest.mark.parametrize(
    "text",
    [
        "Mon 13:30-15:00; Wed",
        "Mo. 13.30 bis 15.00 Uhr, Mi",
        "mittwochs; montags 13:30\u201315:00",
        "周一13:30-15:00、周三",
        "星期一 13\uff1a30至15\uff1a00\uff1b礼拜三",
        "lundi 13h30 à 15h00; mercredi",
        "Lunes 13:30 a 15:00\nmié",
    ],
)
def test_weekdays_are_read_in_five_languages(text: str) -> None:
    assert read_weekly(text) == (
        WeeklyCell(Weekday.MONDAY, time(13, 30), time(15)),
        WeeklyCell(Weekday.WEDNESDAY),
    )


def test_weekdays_without_times_take_those_of_the_columns() -> None:
    row = "1,A,2030-09-03,2030-09-12,Tue 8:00-9:00; Thu,10:00,11:00,1\n"
    (state,) = planned(HEADER + row).created
    assert local(state) == [
        ("09-03 08:00", "09:00"),
        ("09-05 10:00", "11:00"),
        ("09-10 08:00", "09:00"),
        ("09-12 10:00", "11:00"),
    ]


# On Wednesday, the fifth lesson is shorter, and there is no sixth.
LESSONS = (
    Period("5", time(13, 30), time(14, 15), (Weekday.MONDAY, Weekday.TUESDAY)),
    Period("5", time(13, 15), time(13, 45), (Weekday.WEDNESDAY,)),
    Period("6", time(14, 15), time(15), (Weekday.MONDAY, Weekday.TUESDAY)),
)
WITH_PERIOD = HEADER.replace("start_time,end_time", "period")


def test_weekdays_have_periods_with_the_times_of_the_day() -> None:
    weekly = read_weekly("周一第5节、周三第5节; Tue 5-6", LESSONS)
    assert weekly == (
        WeeklyCell(Weekday.MONDAY, time(13, 30), time(14, 15)),
        WeeklyCell(Weekday.TUESDAY, time(13, 30), time(15)),
        WeeklyCell(Weekday.WEDNESDAY, time(13, 15), time(13, 45)),
    )
    assert read_weekly("Mo. 5. Stunde, Wed 5") == (SlotFileProblem.UNKNOWN_PERIOD.problem())
    assert read_weekly("Mo. 5. Stunde, Wed 5", LESSONS) == (weekly[0], weekly[2])
    # What can be both is a period of a school that has it, and a time if it has not.
    nine = (WeeklyCell(Weekday.THURSDAY, time(9), time(10)),)
    assert read_weekly("Thu 9-10", LESSONS) == read_weekly("Thu 9-10") == nine
    assert read_weekly("Mon 5-6", LESSONS) == (WeeklyCell(Weekday.MONDAY, time(13, 30), time(15)),)
    # Times with a colon are times, as an export writes them.
    odd = (Period("13:30-15:00", time(1), time(2)),)
    assert read_weekly("Mon 13:30-15:00", odd) == read_weekly("Mon 13:30-15:00")
    for unknown in ("Wed 6", "周二第7节", "Thu 5"):
        assert read_weekly(unknown, LESSONS) == SlotFileProblem.UNKNOWN_PERIOD.problem()
    for wrong in ("Monk 5", "5", "Mon 25:00-26:00"):
        assert read_weekly(wrong, LESSONS) == SlotFileProblem.INVALID_WEEKLY.problem()


def test_the_period_of_a_column_is_that_of_each_weekday_without_times() -> None:
    rows = (
        "1,A,2030-09-02,2030-09-04,Mon; Wed,5,1\n"
        "2,B,2030-09-03,,,5\u20136,1\n"
        "3,C,2030-09-02,2030-09-03,Mon 8:00-9:00; Tue,5,1\n"
    )
    first, second, third = planned(WITH_PERIOD + rows, periods=LESSONS).created
    assert local(first) == [("09-02 13:30", "14:15"), ("09-04 13:15", "13:45")]
    assert local(second) == [("09-03 13:30", "15:00")]
    assert local(third) == [("09-02 08:00", "09:00"), ("09-03 13:30", "14:15")]
    # The stored times are those of the file, which changes nothing then.
    campaign = campaign_of(first, second, third)
    made = planned(WITH_PERIOD + rows, campaign, LESSONS)
    assert (made.unchanged, made.is_empty) == (3, True)
    made = planned("number,weekly\n2,Tue 13:30-15:00\n", campaign)
    assert (made.unchanged, made.is_empty) == (1, True)
    # A column of periods replaces the times, and one of times the period.
    (early,) = planned("number,start_time,end_time\n2,8:00,9:00\n", campaign).edited.values()
    assert local(early) == [("09-03 08:00", "09:00")]
    (back,) = planned("number,period\n2,5-6\n", campaign_of(early), LESSONS).edited.values()
    assert local(back) == local(second)


def test_an_unknown_period_and_a_period_with_times_are_problems() -> None:
    rows = (
        "1,A,2030-09-02,2030-09-04,Mon; Wed,6,1\n"
        "2,B,2030-09-02,,,7,1\n"
        "3,C,2030-09-02,,Mon 13:30-15:00,5,1\n"
    )
    assert codes(WITH_PERIOD + rows, periods=LESSONS) == [((3,), "period", "UNKNOWN_PERIOD")]
    assert codes(WITH_PERIOD + rows.replace(",7,", ",5,"), periods=LESSONS) == [
        ((2,), "period", "UNKNOWN_PERIOD"),
        ((4,), "period", "TIMES_TWICE"),
    ]
    both = "number,title,first_day,start_time,period,places\n4,D,2030-09-02,13:30,5,1\n"
    assert codes(both, periods=LESSONS) == [((2,), "period", "TIMES_TWICE")]


def test_every_problem_names_its_line_its_column_and_its_code() -> None:
    rows = (
        "1,,2030-09-03,,,9:00,10:00,1\n"
        "2,A,2030-09-03,,,9:00,,1\n"
        "3,A,,,,9:00,10:00,1\n"
        "4,A,2030-09-03,2030-10-03,,9:00,10:00,1\n"
        "5,A,2030-09-03,2030-10-03,Tue 8:00-9:00,9:00,,1\n"
        "6,A,2030-09-03,2030-09-01,Tue,9:00,10:00,1\n"
        ",A,2030-09-03,,,9:00,10:00,1\n"
        "2-Jan,A,2030-09-03,,,9:00,10:00,1\n"
        "1,B,2030-09-03,,,9:00,10:00,1\n"
        "7,A,2030-09-03,,,9:00,10:00,2000\n"
        "8,A,2029-09-03,,,9:00,10:00,1\n"
    )
    assert codes(HEADER + rows) == [
        ((2,), "title", "TITLE_MISSING"),
        ((3,), "end_time", "TIMES_MISSING"),
        ((4,), "first_day", "TIMES_MISSING"),
        ((5,), "weekly", "WEEKDAYS_MISSING"),
        ((6,), "start_time", "TIMES_TWICE"),
        ((7,), "last_day", "LAST_BEFORE_FIRST"),
        ((8,), "number", "NUMBER_MISSING"),
        ((9,), "number", "NUMBER_IS_A_DATE"),
        ((10,), "number", "SAME_SLOT"),
        ((11,), "places", "NOT_IN_RANGE"),
        ((12,), "first_day", "IN_PAST"),
    ]
    broken = "Nr.;Kurs;Wochentage;Plätze;Limits;Termine\n1;A;noon;many;7a;tomorrow\n1;A\n"
    found = plan(broken)
    assert isinstance(found, InvalidFile)
    assert [(each.code, each.header) for each in found.problems] == [
        ("WRONG_CELL_COUNT", None),
        ("INVALID_WEEKLY", "Wochentage"),
        ("NOT_IN_RANGE", "Plätze"),
        ("INVALID_LIMITS", "Limits"),
        ("INVALID_MEETINGS", "Termine"),
    ]
    assert codes("title\nA\n") == [((1,), "number", "NO_NUMBER_COLUMN")]
    assert codes("number\n1\n") == [
        ((2,), "title", "TITLE_MISSING"),
        ((2,), "places", "NOT_IN_RANGE"),
        ((2,), "first_day", "TIMES_MISSING"),
    ]
    too_many = "id\n" + "slot_x\n" * (MAX_ROWS + 1)
    assert codes(too_many)[0] == ((MAX_ROWS + 2,), None, "TOO_MANY_ROWS")


def chess() -> SlotState:
    """Return a course with a teacher, a room and a number with zeros."""
    (state,) = planned(HEADER + CHESS.replace("K1", "0012")).created
    several = (ROOM.name, VOGEL.name)
    return with_facts(state, resource=ROOM.name, several_resources=several, location="Yard")


def test_a_missing_column_leaves_a_field_and_an_empty_cell_empties_it() -> None:
    campaign = campaign_of(chess(), resources={**RESOURCES, "ms. vogel": VOGEL})
    made = planned("number,location,teacher\n0012,,ms. vogel\n", campaign)
    (after,) = made.edited.values()
    assert after.slot == replace(chess().slot, terms=TERMS, location=None, revision=1)
    made = planned("number,teacher\n0012,\n", campaign)
    (after,) = made.edited.values()
    assert after.slot.resources == (ROOM.name,)
    assert (made.unchanged, made.not_in_file) == (0, 0)


def test_a_changed_time_changes_only_the_times() -> None:
    campaign = campaign_of(chess())
    (after,) = planned("number,start_time\n0012,14:00\n", campaign).edited.values()
    assert {start[-5:] for start, _ in local(after)} == {"14:00"}
    assert len(after.slot.meetings) == 32
    one_day = "number,last_day,weekly\n0012,,\n"
    (after,) = planned(one_day, campaign).edited.values()
    assert (after.slot.meetings, local(after)) == ((), [("09-03 13:30", "15:00")])
    meetings = (
        "number,meetings\n0012,"
        "2030-09-03T13:30+02:00/2030-09-03T15:00+02:00; 2030-09-24T11:30Z/2030-09-24T13:00Z\n"
    )
    (after,) = planned(meetings, campaign).edited.values()
    assert local(after) == [("09-03 13:30", "15:00"), ("09-24 13:30", "15:00")]
    back = "number,first_day,last_day,weekly,start_time,end_time\n" + CHESS.replace("K1", "0012")
    back = back.replace("Chess,", "").replace(",12\n", "\n")
    (again,) = planned(back, campaign_of(after)).edited.values()
    assert again.slot.meetings == chess().slot.meetings
    both = back.replace("time\n", "time,meetings\n").replace("15:00\n", "15:00,x\n")
    both = both.replace(",x", ",2030-09-03T13:30Z/2030-09-03T15:00Z")
    assert codes(both, campaign) == [((2,), "meetings", "TIMES_TWICE")]


@pytest.mark.parametrize("days", ["2030-12-20,Tue 8:00-9:00; Thu 8:00-9:00", ",Tue 8:00-9:00"])
def test_times_in_the_weekdays_alone_are_imported_again(days: str) -> None:
    text = f"number,title,first_day,last_day,weekly,places\n1,A,2030-09-03,{days},1\n"
    (state,) = planned(text).created
    assert planned(text, campaign_of(state)).is_empty
    moved = planned(text.replace("8:00", "7:00"), campaign_of(state))
    assert {start[-5:] for start, _ in local(states_of(moved)[state.id])} == {"07:00"}


def test_a_number_without_its_zeros_is_no_other_course() -> None:
    campaign = campaign_of(chess())
    assert codes("number,title\n12,Chess\n", campaign) == [((2,), "number", "SIMILAR_NUMBER")]
    made = planned(f"id,number\nslot_{chess().id},12\n", campaign)
    assert (made.unchanged, made.is_empty) == (1, True)


@pytest.mark.parametrize("text", ["02/01/2026", "2026-02-01", "2026年2月1日", "2月1日"])
def test_a_number_that_became_a_date_is_no_other_number(text: str) -> None:
    state = with_facts(chess(), number="2-1")
    row = f"id,number\nslot_{state.id},{text}\n"
    assert planned(row, campaign_of(state)).is_empty
    other = campaign_of(with_facts(state, number="2-7"))
    assert codes(row, other) == [((2,), "number", "NUMBER_IS_A_DATE")]


def test_rows_are_matched_by_id_and_else_by_number() -> None:
    first, second = chess(), with_facts(chess(), id=SlotId("b"), number="B")
    campaign = campaign_of(first, second)
    swapped = f"id,number\nslot_{first.id},B\nslot_b,0012\n"
    made = planned(swapped, campaign)
    assert {each.slot.number for each in made.edited.values()} == {"B", "0012"}
    assert made.numbers == ("0012", "B")
    assert codes(f"id,number\nslot_{first.id},B\n", campaign) == [((2,), "number", "NUMBER_TAKEN")]
    assert codes("id,number\nslot_z,Z\n", campaign) == [((2,), "id", "UNKNOWN_ID")]
    same = f"id,number\nslot_{first.id},0012\n,0012\n"
    assert codes(same, campaign) == [((3,), "number", "SAME_SLOT")]
    made = planned("number,title\nB,Go\n", campaign)
    assert (len(made.edited), made.not_in_file, made.lines) == (1, 1, {SlotId("b"): 2})


def test_the_number_of_a_cancelled_course_is_free() -> None:
    gone = with_facts(chess(), status=SlotStatus.CANCELLED)
    made = planned(HEADER + CHESS.replace("K1", "0012"), campaign_of(gone))
    assert (len(made.created), made.not_in_file) == (1, 0)
    row = f"id,title\nslot_{gone.id},Go\n"
    assert codes(row, campaign_of(gone)) == [((2,), "id", "SLOT_CANCELLED")]


def test_places_that_are_taken_stay() -> None:
    booked, _ = book_users(build_slot(capacity=2, number="1"), "ada", "ben")
    assert codes("number,places\n1,1\n", campaign_of(booked)) == [
        ((2,), "places", "CAPACITY_BELOW_TAKEN")
    ]


def test_an_unknown_name_is_a_problem_unless_it_may_become_a_resource() -> None:
    text = "number,teacher,room\n0012,Ms. Vogl,202\n"
    found = plan(text, campaign_of(chess()))
    assert isinstance(found, InvalidFile)
    similar, unknown = found.problems
    assert (similar.code, similar.values["similar"]) == ("SIMILAR_RESOURCE", VOGEL.name)
    assert (unknown.code, unknown.column) == ("SIMILAR_RESOURCE", "room")
    made = plan(text, campaign_of(chess()), creates_resources=True)
    assert isinstance(made, SlotFilePlan)
    assert [(each.name, each.kind) for each in made.new_resources] == [
        ("Ms. Vogl", ResourceKind.STAFF),
        ("202", ResourceKind.ROOM),
    ]


def test_a_room_that_another_course_uses_is_a_problem_of_the_line() -> None:
    published = {"status": SlotStatus.PUBLISHED}
    first = with_facts(chess(), **published)
    other = with_facts(chess(), id=SlotId("o"), resource=VOGEL.name, several_resources=())
    other = with_facts(other, number="2", **published)
    text = "number,room\n2,201\n"
    campaign = campaign_of(first, other)
    file, made = parse_slot_file(text.encode()), planned(text, campaign)
    assert isinstance(file, SlotFile)
    found = conflict_problems(file, made, [first])
    assert found is not None
    (problem,) = found.problems
    assert (problem.lines, problem.code) == ((2,), "RESOURCE_TAKEN")
    swapped = planned("number,teacher,room\n2,,201\n0012,Ms. Vogel,\n", campaign)
    assert conflict_problems(file, swapped, [first, other]) is None


LINES = st.text(
    st.characters(categories=["L", "N", "P", "S", "Zs"], exclude_characters="\ufffe\uffff"),
    max_size=12,
)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NAMES = st.sampled_from([*RESOURCES, "Vogel; Anna", "=Room", "A、B"])
STARTS = st.timedeltas(timedelta(days=3_000), timedelta(days=42_000)).map(EPOCH.__add__)
GROUPS = st.sampled_from(["7a", "class:*", "A=1", "A、B"])
MINUTES = st.integers(1, 3_000)


@st.composite
def meetings(draw: st.DrawFn) -> tuple[Meeting, ...]:
    """Return meetings in order: weekly ones with gaps, and some that are not regular."""
    start = draw(STARTS)
    if draw(st.booleans()):
        start = start.replace(second=0, microsecond=0)
    days = draw(st.sampled_from([[0], [0, 2], [0, 7, 14, 28], [0, 3, 7, 10, 14], [0, 1, 20]]))
    length = timedelta(minutes=draw(MINUTES if len(days) == 1 else st.integers(1, 700)))
    starts = [start + timedelta(days=day) for day in days]
    return tuple(Meeting(each, each + length) for each in starts)


@st.composite
def states(draw: st.DrawFn) -> SlotState:
    """Return a slot of any kind that organizers can make."""
    times = draw(meetings())
    names = tuple(draw(st.lists(NAMES, max_size=3, unique=True)))
    limits = draw(st.dictionaries(GROUPS, st.integers(1, 9)))
    return build_slot(
        capacity=draw(st.integers(1, 1000)),
        id=SlotId(draw(st.uuids()).hex[:24]),
        number=draw(LINES).strip() or None,
        title=draw(LINES).strip() or "=1+1",
        location=draw(LINES).strip() or None,
        time_zone=draw(st.sampled_from(["Europe/Berlin", "Asia/Shanghai", "America/New_York"])),
        start=times[0].start,
        end=times[-1].end,
        meetings=times if len(times) > 1 or draw(st.booleans()) else (),
        resource=names[0] if names else None,
        several_resources=names if len(names) > 1 else (),
        group_limits=tuple(GroupLimit(*each) for each in sorted(limits.items())),
        waitlist_capacity=draw(st.integers(0, 1000)),
        status=draw(st.sampled_from(SlotStatus)),
    )  # fmt: skip


DESCRIPTIONS = st.sampled_from(
    ["", "# Chess\n\nBring a board.", "a\r\n\r\n- b; c\r\n", "=1\t,;'\""]
)
CAMPAIGNS = st.tuples(
    st.lists(states(), max_size=4, unique_by=lambda state: state.id), DESCRIPTIONS
)


@given(CAMPAIGNS, st.sampled_from(CsvSeparator))
def test_an_export_that_is_imported_again_changes_nothing(
    drawn: tuple[list[SlotState], str], separator: CsvSeparator
) -> None:
    found, text = drawn
    texts: Mapping[str, str] = {state.id: text for state in found if text}
    campaign = campaign_of(*found, descriptions=texts)
    # Also if the names of periods look like times.
    names = ("9", "10", "9-10", "09:00-10:00", "13:30-15:00")
    periods = tuple(Period(name, time(1), time(2)) for name in names)
    made = plan(write(export(campaign), separator), campaign, periods=periods)
    assert isinstance(made, SlotFilePlan), made
    assert (made.unchanged, made.is_empty, made.not_in_file) == (len(found), True, 0)


def test_the_export_of_a_weekly_course_names_its_weekdays() -> None:
    (row,) = export(campaign_of(chess()))
    shown = {column: cell for column, cell in row.items() if cell and column != "id"}
    assert shown == {
        "number": "0012",
        "title": "Chess",
        "first_day": "2030-09-03",
        "last_day": "2030-12-19",
        "weekly": "Tue; Thu",
        "start_time": "13:30",
        "end_time": "15:00",
        "time_zone": "Europe/Berlin",
        "location": "Yard",
        "teacher": "Ms. Vogel",
        "room": "201",
        "places": "12",
        "waiting_list": "100",
    }
    without = with_facts(chess(), meetings=(chess().slot.meetings[0], *chess().slot.meetings[3:]))
    (row,) = export(campaign_of(without))
    assert (row["except"], row["meetings"]) == ("2030-09-05; 2030-09-10", "")
    odd = with_facts(chess(), meetings=(chess().slot.meetings[0], chess().slot.meetings[31]))
    (row,) = export(campaign_of(odd))
    assert (row["weekly"], row["meetings"][:51]) == (
        "",
        "2030-09-03T13:30:00+02:00/2030-09-03T15:00:00+02:00",
    )


def test_only_the_lines_that_were_edited_change() -> None:
    campaign = campaign_of(*(with_facts(chess(), id=SlotId(each), number=each) for each in "abc"))
    rows = export(campaign)
    rows[1] |= {"title": "Go", "first_day": "03.09.2030", "start_time": "13:30:00"}
    made = planned(write(rows, CsvSeparator.SEMICOLON), campaign)
    (after,) = made.edited.values()
    assert after.slot == replace(campaign.slots[SlotId("b")].slot, title="Go", revision=1)
    assert made.unchanged == 2
