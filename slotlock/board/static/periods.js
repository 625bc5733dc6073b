// @ts-check
/** The periods of a school day, such as the third lesson, which load only at a school that has some. */
import { site } from "./page.js";
import { dateKey, moment, periods, t, timeOf, weekdayOf } from "./text.js";

/** Say in which periods meetings are, each once: from the first to the last one. A name that is no number stands alone. */
periods.of = (meetings, zone) => {
  const texts = meetings.map(({ startTime, endTime }) => {
    const [from, to] = [timeOf(startTime, zone), timeOf(endTime, zone)];
    const day = dateKey(startTime, zone);
    const isOn = (/** @type {any} */ { weekdays }) => !weekdays.length || weekdays.includes(new Date(day).getUTCDay());
    /** @type {any[]} */
    const all = day === dateKey(endTime, zone) && site.periods ? site.periods.filter(isOn) : [];
    const firsts = all.filter((each) => each.startTime === from);
    const pairs = firsts.flatMap((first) => all
      .filter((last) => last.endTime === to && last.startTime >= first.endTime)
      .map((last) => `${first.name}–${last.name}`));
    const name = firsts.find((each) => each.endTime === to)?.name ?? pairs[0];
    const weekday = weekdayOf(startTime, zone);
    return name && (/^\d+(–\d+)?$/.test(name) ? t("meets.period", { day: weekday, name }) : moment(weekday, name));
  });
  return [...new Set(texts)].filter(Boolean).join(" · ");
};
