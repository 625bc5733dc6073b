// @ts-check
/** The views for organizers by their first part of the address. */
import { addDocuments } from "../client.js";
import { openOrganizer } from "./organizer/campaigns.js";
import { openCourse } from "./organizer/course.js";
import { documents } from "./organizer/documents.js";
import { openDoor } from "./organizer/door.js";
import { openDraw } from "./organizer/draw.js";
import { openLed } from "./organizer/led.js";
import { openMail } from "./organizer/mail.js";
import { openMonitor } from "./organizer/monitor.js";
import { openPeople } from "./organizer/people.js";
import { openPlan } from "./organizer/plan.js";
import { openSchool } from "./organizer/school.js";
import { openWebhooks } from "./organizer/webhooks.js";

addDocuments(documents);

/** @type {Record<string, (part: string) => any>} */
export const views = {
  organizer: openOrganizer,
  plan: openPlan,
  course: openCourse,
  draw: openDraw,
  monitor: openMonitor,
  door: openDoor,
  people: openPeople,
  webhooks: openWebhooks,
  mail: openMail,
  led: openLed,
  school: openSchool,
};
