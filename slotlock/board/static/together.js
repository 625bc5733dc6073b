// @ts-check
/** Teams on the board: for whom to book, which places others have, and invitations. */
import { bookFor, book, deciding, leaveQueue, placeOf, reason, refused } from "./bookings.js";
import { me, newKey, resultOf, run, sendUntilAnswered } from "./client.js";
import { h, redraw } from "./kernel.js";
import { say } from "./page.js";
import { invitations, notePlaces, others, placesFor, readPeople, shows, whom } from "./people.js";
import { askOnce, button, checkbox, icon, notice, whose } from "./parts.js";
import { ordinal, t } from "./text.js";

/** In a larger team, nobody but oneself is chosen at first. */
const BOTH = 2;
/** So long it is shown what came of an invitation. */
const ANSWERED_MS = 15_000;
let answered = "";

/** Return this person and the others of their teams. @returns {Array<import("./people.js").Person>} */
function everybody() {
  return [me, ...others()];
}

/** @param {string} id */
function isChosen(id) {
  const isFirst = id === me?.id || everybody().length <= BOTH;
  return whom.toggled.has(id) !== isFirst;
}

/**
 * Return what is known of others and a slot, and a choice for whom to book.
 * @param {any} slot @param {{isChoosing?: boolean, hasMe: boolean, isPage?: boolean}} more
 */
function below(slot, { isChoosing, hasMe, isPage }) {
  const failed = refused.get(slot.id)?.refusal;
  const content = [
    others().map((each) => stateOfOther(slot, each, isPage)),
    failed?.people && notice("stop", "warning", reason(failed)),
    isChoosing && choice(slot, hasMe),
  ].flat().filter(Boolean);
  if (!content.length) return null;
  const kind = isPage ? "sheet stack" : "below stack";
  return h("div", { class: kind, role: "group", "aria-label": t("whom.forWhom"), "data-key": `below ${slot.id}` }, content);
}

/** Say what another person has here. @param {any} slot @param {import("./people.js").Person} person @param {boolean} [isPage] */
function stateOfOther(slot, { id, name }, isPage) {
  const at = placeOf(slot.id, id);
  const sent = deciding.get(at);
  const place = placesFor(slot.id).find(({ person }) => person.id === id);
  const failed = refused.get(at)?.refusal;
  const key = { "data-key": at };
  const doing = sent && (sent.position ? t("whom.queued", { name, ordinal: ordinal(sent.position) }) : t("whom.deciding", { name }));
  if (sent) return h(
    "div",
    { class: "row", ...key },
    h("p", null, icon("people"), " ", sent.isLost ? t("state.noConnection") : doing),
    isPage && sent.ticketId && button("plain", [t("slot.leaveQueue"), whose(name)], () => leaveQueue(at)),
  );
  if (failed) return h("p", key, icon("warning"), " ", reason(failed));
  if (!place) return null;
  const text = h("p", { class: "good", ...key }, icon("tick"), " ", t("whom.has", { name }));
  if (!isPage) return text;
  const yes = t("week.giveBack");
  const texts = { label: [yes, whose(name)], question: t("whom.giveBackAsk", { name }), yes, no: t("week.keep") };
  return h("div", { class: "row", ...key }, text, askOnce(`back ${at}`, "plain", texts, () => giveBack(slot.id, place)));
}

/** Give back the place that was booked here for another person. @param {string} slotId @param {{id: string, person: any}} place */
async function giveBack(slotId, { id, person }) {
  const key = newKey();
  const result = await sendUntilAnswered(() => resultOf("cancelBooking", { id, key }), { isWanted: () => true, onTrouble: () => {} });
  if (!result) return;
  const isDone = result.booking || result.code === "BOOKING_NOT_FOUND";
  if (isDone) notePlaces(slotId, placesFor(slotId).filter((each) => each.id !== id));
  else refused.set(placeOf(slotId, person.id), { refusal: { ...result, people: [person] }, at: Date.now() });
  say(isDone ? t("whom.gaveBack", person) : reason(result), slotId);
  redraw();
}

/** Let somebody choose for whom to book. @param {any} slot @param {boolean} hasMe */
function choice(slot, hasMe) {
  const isQueue = slot.admission === "QUEUE_ONLY";
  const hasPlace = (/** @type {string} */ id) => placesFor(slot.id).some(({ person }) => person.id === id);
  const isFree = (/** @type {string} */ id) => !deciding.has(placeOf(slot.id, id)) && !hasPlace(id);
  const free = everybody().filter(({ id }) => (id === me?.id ? hasMe : isFree(id)));
  if (!free.length) return null;
  const chosen = free.filter(({ id }) => isChosen(id));
  const isOnlyMe = chosen.length === 1 && chosen[0].id === me?.id;
  const act = () => {
    whom.openAt = "";
    if (isOnlyMe) book(slot);
    else bookFor(slot, chosen);
  };
  const set = (/** @type {string} */ id) => () => void (whom.toggled.delete(id) || whom.toggled.add(id));
  const kind = isQueue ? "queue" : "book";
  const count = chosen.length;
  const label = !count ? t("action.bookFor")
    : isOnlyMe ? t(isQueue ? "action.queue" : "whom.bookMe")
    : count === 1 ? t(`whom.${kind}One`, chosen[0])
    : t(count === BOTH ? `whom.${kind}Both` : `whom.${kind}All`, { count });
  return [
    h(
      "fieldset",
      { "data-key": "whom" },
      h("legend", null, h("strong", null, t("whom.forWhom"))),
      free.map(({ id, name }) => checkbox("check", id === me?.id ? t("whom.me") : name, { "data-key": id, checked: isChosen(id) }, set(id))),
    ),
    h("div", null, button("", [label, whose(slot.title)], act, { disabled: count === 0 })),
  ];
}

/** Ask whether the places that were booked here for others are still theirs. @param {string} slotId */
async function check(slotId) {
  const before = placesFor(slotId);
  if (!before.length) return;
  const { nodes } = await run("placesOfOthers", { ids: before.map(({ id }) => id) }).catch(() => ({ nodes: null }));
  if (!nodes) return;
  const live = nodes.filter((/** @type {any} */ each) => each?.status === "CONFIRMED" || each?.status === "HELD").map((/** @type {any} */ each) => each.id);
  const left = placesFor(slotId).filter((each) => !before.includes(each) || live.includes(each.id));
  if (left.length < placesFor(slotId).length) notePlaces(slotId, left);
}

/** Return the invitations to teams, each with an answer. */
function invited() {
  /** @param {string} name @param {any} invitation @param {string} text */
  const answer = (name, { teamId }, text) => async () => {
    const result = await sendUntilAnswered(() => resultOf(name, { teamId }), { isWanted: () => true, onTrouble: () => {} });
    if (!result) return;
    answered = result.code ? reason(result) : text;
    say(answered);
    setTimeout(() => (answered = ""), ANSWERED_MS);
    await readPeople();
    redraw();
  };
  return [
    invitations().map((each) => h(
      "div",
      { class: "notice", "data-key": each.teamId },
      icon("people"),
      h("p", null, t("account.invitation", { name: each.teamName, by: each.invitedBy?.name ?? "" })),
      h(
        "div",
        { class: "row" },
        button("", [t("account.accept"), whose(each.teamName)], answer("acceptTeamInvitation", each, t("account.accepted", { name: each.teamName }))),
        button("plain", [t("account.decline"), whose(each.teamName)], answer("declineTeamInvitation", each, t("account.declined"))),
      ),
    )),
    answered && notice("", "people", answered),
  ];
}

Object.assign(shows, { below, invited, check });
