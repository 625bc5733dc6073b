"""When a slot takes place, in the languages of users: a course is not one block of weeks.

Mon, May 5, 2031, 10:00–11:00 (Berlin time)
Mondays 10:00–11:00, May 5 to June 30, 2031, not on June 9 (Berlin time)
Mon, period 3; Thu, period 5–6
Mon, Jul 2, 2035 09:00
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import date, datetime, timedelta
from functools import lru_cache
from itertools import pairwise
from math import gcd
from zoneinfo import ZoneInfo

from slotlock.domain.schedule.meetings import Meeting
from slotlock.domain.schedule.periods import NamedPeriods
from slotlock.domain.schedule.zones import to_local_time
from slotlock.domain.shared.value_object import value_object

MAX_LINES = 5
_NUMBERS = re.compile(r"\d+(\u2013\d+)?")
# Fewer meetings of a weekday are listed one by one, and so are those with more weeks for each.
MIN_WEEKS = 3
MAX_SHARE = 1.5


@value_object
class ScheduleWords:
    """The words and the order of dates in one language; `|` separates days and months."""

    weekdays: str
    on_weekdays: str
    months: str
    short_months: str
    day: str
    date: str
    date_with_weekday: str
    every: str
    course: str
    without: str
    zone: str
    period: str
    separator: str = ", "
    before_time: str = ", "


SCHEDULE_WORDS = {
    "en": ScheduleWords(
        weekdays="Mon|Tue|Wed|Thu|Fri|Sat|Sun",
        on_weekdays="Mondays|Tuesdays|Wednesdays|Thursdays|Fridays|Saturdays|Sundays",
        months="January|February|March|April|May|June|July|August|September|October|November|"
        "December",
        short_months="Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec",
        day="{month} {day}",
        date="{month} {day}, {year}",
        date_with_weekday="{weekday}, {date}",
        every=" every {weeks} weeks",
        course="{days} {times}, {first} to {last}",
        without=", not on {dates}",
        zone=" ({city} time)",
        period="{day}, period {name}",
    ),
    "de": ScheduleWords(
        weekdays="Mo.|Di.|Mi.|Do.|Fr.|Sa.|So.",
        on_weekdays="montags|dienstags|mittwochs|donnerstags|freitags|samstags|sonntags",
        months="Januar|Februar|März|April|Mai|Juni|Juli|August|September|Oktober|November|Dezember",
        short_months="Jan.|Feb.|März|Apr.|Mai|Juni|Juli|Aug.|Sept.|Okt.|Nov.|Dez.",
        day="{day}. {month}",
        date="{day}. {month} {year}",
        date_with_weekday="{weekday} {date}",
        every=" alle {weeks} Wochen",
        course="{days} {times}, {first} bis {last}",
        without=", nicht am {dates}",
        zone=" (Ortszeit {city})",
        period="{day}, {name}. Stunde",
    ),
    "fr": ScheduleWords(
        weekdays="lun.|mar.|mer.|jeu.|ven.|sam.|dim.",
        on_weekdays="le lundi|le mardi|le mercredi|le jeudi|le vendredi|le samedi|le dimanche",
        months="janvier|février|mars|avril|mai|juin|juillet|août|septembre|octobre|novembre|"
        "décembre",
        short_months="janv.|févr.|mars|avr.|mai|juin|juil.|août|sept.|oct.|nov.|déc.",
        day="{day} {month}",
        date="{day} {month} {year}",
        date_with_weekday="{weekday} {date}",
        every=" toutes les {weeks} semaines",
        course="{days} {times}, du {first} au {last}",
        without=", sauf le {dates}",
        zone=" (heure de {city})",
        period="{day}, période {name}",
    ),
    "es": ScheduleWords(
        weekdays="lun|mar|mié|jue|vie|sáb|dom",
        on_weekdays="los lunes|los martes|los miércoles|los jueves|los viernes|los sábados|"
        "los domingos",
        months="enero|febrero|marzo|abril|mayo|junio|julio|agosto|septiembre|octubre|noviembre|"
        "diciembre",
        short_months="ene|feb|mar|abr|may|jun|jul|ago|sep|oct|nov|dic",
        day="{day} de {month}",
        date="{day} de {month} de {year}",
        date_with_weekday="{weekday} {date}",
        every=" cada {weeks} semanas",
        course="{days} {times}, del {first} al {last}",
        without=", excepto el {dates}",
        zone=" (hora de {city})",
        period="{day}, período {name}",
    ),
    "zh": ScheduleWords(
        weekdays="周一|周二|周三|周四|周五|周六|周日",
        on_weekdays="每周一|每周二|每周三|每周四|每周五|每周六|每周日",
        months="1|2|3|4|5|6|7|8|9|10|11|12",
        short_months="1|2|3|4|5|6|7|8|9|10|11|12",
        day="{month}月{day}日",
        date="{year}年{month}月{day}日",
        date_with_weekday="{date} {weekday}",
        every="（每{weeks}周一次）",
        course="{days} {times}，{first}至{last}",
        without="，{dates}除外",
        zone="（{city} 当地时间）",
        period="{day}第{name}节",
        separator="、",
        before_time=" ",
    ),
}


@value_object
class Lessons:
    """Meetings on one weekday at the same local times, `weeks` apart but for the skipped days.

    `start` and `end` are the local times of the first. A single meeting is one, too.
    """

    start: datetime
    end: datetime
    last: date
    weeks: int = 1
    skipped: tuple[date, ...] = ()
    count: int = 1


@lru_cache(maxsize=64)  # a roster repeats the text in each row
def format_schedule(
    meetings: tuple[Meeting, ...], time_zone: str, language: str, separator: str = ""
) -> str:
    """Return when meetings, in order, take place in a zone: regular lessons are one line.

    At most `MAX_LINES` lines, and how many meetings more there are.
    """
    lessons = sorted(find_lessons(meetings, time_zone), key=lambda each: each.start)
    separator = separator or ("；" if language == "zh" else "; ")
    lines = separator.join(_format_lessons(each, language) for each in lessons[:MAX_LINES])
    rest = sum(each.count for each in lessons[MAX_LINES:])
    return (
        f"{lines}{f' (+{rest})' if rest else ''}{zone_text(str(lessons[0].start.tzinfo), language)}"
    )


def zone_text(time_zone: str, language: str) -> str:
    """Return whose time it is: that of the city in the name of the zone, if there is one."""
    _, _, city = time_zone.partition("/")
    city = city.rpartition("/")[2].replace("_", " ")
    return SCHEDULE_WORDS[language].zone.format(city=city) if city else f" ({time_zone})"


def format_time(instant: datetime, time_zone: str, language: str) -> str:
    """Return a time in a zone, in the order of the language."""
    local = to_local_time(instant, time_zone)
    return f"{_format_day(local, language)}{SCHEDULE_WORDS[language].before_time}{local:%H:%M}"


def format_short_time(local: datetime, language: str) -> str:
    """Return a local time with its day, in abbreviations: the head of a column."""
    return f"{_format_day(local, language, is_short=True)} {local:%H:%M}"


def format_short_day(day: date, language: str) -> str:
    """Return a day without its year, in abbreviations."""
    return _format_date(day, SCHEDULE_WORDS[language].day, language, is_short=True)


def format_periods(found: Sequence[NamedPeriods], language: str) -> str:
    """Return the weekdays and the periods of a course; a name that is no number stands alone."""
    words = SCHEDULE_WORDS[language]
    days = [each.rstrip(".") for each in words.weekdays.split("|")]
    texts = (
        (words.period if _NUMBERS.fullmatch(each.name) else "{day}, {name}").format(
            day=days[each.weekday.value], name=each.name
        )
        for each in found
    )
    return words.separator.replace(",", ";").join(texts)  # a text has commas itself


def format_date(day: date, language: str) -> str:
    """Return a day with its year, in words."""
    return _format_date(day, SCHEDULE_WORDS[language].date, language)


def find_lessons(meetings: Sequence[Meeting], time_zone: str) -> Iterator[Lessons]:
    """Yield the lessons of a course: its meetings by weekday and local time.

    The times are in UTC if the local years are out of range.
    """
    ends = [to_local_time(at, time_zone) for at in (meetings[0].start, meetings[-1].end)]
    if not all(isinstance(each.tzinfo, ZoneInfo) for each in ends):
        time_zone = "UTC"
    alike = defaultdict[object, list[tuple[datetime, datetime]]](list)
    for meeting in meetings:
        start, end = (to_local_time(each, time_zone) for each in (meeting.start, meeting.end))
        nights = (end.date() - start.date()).days
        alike[start.weekday(), start.time(), nights, end.time()].append((start, end))
    for times in alike.values():
        days = [start.date() for start, _ in times]
        weeks = gcd(*((after - before).days // 7 for before, after in pairwise(days))) or 1
        count = (days[-1] - days[0]).days // 7 // weeks + 1
        if len(days) >= MIN_WEEKS and count <= MAX_SHARE * len(days):
            all_days = (days[0] + timedelta(weeks=weeks * number) for number in range(count))
            skipped = tuple(sorted({*all_days} - {*days}))
            yield Lessons(*times[0], days[-1], weeks, skipped, len(days))
        else:
            yield from (Lessons(start, end, start.date()) for start, end in times)


def _format_lessons(lessons: Lessons, language: str) -> str:
    words, start, end = SCHEDULE_WORDS[language], lessons.start, lessons.end
    is_same_day = start.date() == end.date()
    if lessons.count == 1:
        day, last_day = (f"{_format_day(at, language)}{words.before_time}" for at in (start, end))
        return f"{day}{start:%H:%M}–{'' if is_same_day else last_day}{end:%H:%M}"
    days = words.on_weekdays.split("|")[start.weekday()]
    if lessons.weeks > 1:
        days += words.every.format(weeks=lessons.weeks)
    # A year is written once if it is the same: with the first date in Chinese, else with the last.
    form = words.day if start.year == lessons.last.year else words.date
    forms = (words.date, form) if language == "zh" else (form, words.date)
    first, last = (
        _format_date(day, each, language)
        for day, each in zip((start.date(), lessons.last), forms, strict=True)
    )
    times = f"{start:%H:%M}–{end:%H:%M}"
    text = words.course.format(days=days, times=times, first=first, last=last)
    if not lessons.skipped:
        return text
    dates = words.separator.join(_format_date(day, form, language) for day in lessons.skipped)
    return text + words.without.format(dates=dates)


def _format_day(day: date, language: str, *, is_short: bool = False) -> str:
    words = SCHEDULE_WORDS[language]
    weekday = words.weekdays.split("|")[day.weekday()]
    text = _format_date(day, words.date, language, is_short=is_short)
    return words.date_with_weekday.format(weekday=weekday, date=text)


def _format_date(day: date, form: str, language: str, *, is_short: bool = False) -> str:
    words = SCHEDULE_WORDS[language]
    month = (words.short_months if is_short else words.months).split("|")[day.month - 1]
    return form.format(day=day.day, month=month, year=day.year)
