// A demonstration: two users book, hold, confirm, wait and queue for one place.
import type { Api } from './api.js'
import * as booking from './booking.js'
import { CancelSlotDocument, CreateSlotDocument } from './generated.js'
import type { Session } from './session.js'

export interface User {
  readonly session: Session
  readonly api: Api
}

export interface Credentials {
  readonly email: string
  readonly password: string
}

export async function tour(newUser: () => User, organizer: Credentials): Promise<void> {
  const title = `Piano lesson ${booking.newKey()}`
  const host = newUser()
  expect(await host.session.login(organizer.email, organizer.password), 'Session')
  await createSlot(host.api, title)

  const ada = await register(newUser(), 'Ada')
  const [slot] = await booking.listSlots(ada, title)
  if (!slot) throw new Error('The slot is not in the list.')
  console.log(`listed: places left: ${slot.remaining}`)
  const watched = watchUntilCancelled(ada, slot.id)

  const booked = expect(await booking.book(ada, slot.id, booking.newKey()), 'Booked')
  console.log(`booked: ${booked.booking.status}`)

  const ben = await register(newUser(), 'Ben')
  await wait(ben, slot.id, () => cancel(ada, booked.booking.id))

  await holdAndConfirm(ada, slot.id)
  await queue(ada, slot.id)

  await host.api.mutate(CancelSlotDocument, { slotId: slot.id })
  await watched
  console.log('watched: the slot is canceled')
}

async function createSlot(api: Api, title: string): Promise<void> {
  const input = {
    title,
    startTime: '2031-05-05T09:00:00+02:00',
    endTime: '2031-05-05T09:45:00+02:00',
    timeZone: 'Europe/Berlin',
  }
  expect((await api.mutate(CreateSlotDocument, { input })).createSlot, 'Slot')
}

async function register({ session, api }: User, name: string): Promise<Api> {
  const email = `${name}-${booking.newKey()}@example.com`
  expect(await session.register(name, email, 'correct horse'), 'Session')
  console.log(`signed in: ${name}`)
  return api
}

function watchUntilCancelled(api: Api, slotId: string): Promise<booking.Availability> {
  return booking.firstMatch(
    (next, fail) => booking.watchSlots(api, [slotId], next, fail),
    ({ remaining, status }) => {
      console.log(`places left: ${remaining}`)
      return status === 'CANCELLED'
    },
  )
}

/** Joins the waiting list of a full slot, and waits until somebody else cancels. */
async function wait(api: Api, slotId: string, otherCancels: () => Promise<void>): Promise<void> {
  const full = expect(await booking.book(api, slotId, booking.newKey()), 'SlotFull')
  console.log(`refused: ${full.code}`)
  const { position } = expect(await booking.joinWaitlist(api, slotId), 'WaitlistJoined')
  console.log(`waiting: position ${position}`)

  const stop = booking.followMyBookings(api, ({ action }) => console.log(`event: ${action}`), fail)
  const place = booking.waitForPlace(api, slotId)
  await otherCancels()
  const { myBooking } = await place
  if (!myBooking) throw new Error('The waiting list ended without a place.')
  console.log(`promoted: ${myBooking.status}`)
  stop()
  await cancel(api, myBooking.id)
}

async function holdAndConfirm(api: Api, slotId: string): Promise<void> {
  const held = expect(await booking.book(api, slotId, booking.newKey(), true), 'Booked')
  console.log(`held: ${held.booking.status}`)
  const outcome = await booking.confirm(api, held.booking.id, booking.newKey())
  console.log(`confirmed: ${expect(outcome, 'BookingConfirmed').booking.status}`)
  await cancel(api, held.booking.id)
}

async function queue(api: Api, slotId: string): Promise<void> {
  const request = expect(await booking.requestTicket(api, slotId, booking.newKey()), 'Ticket')
  const ticket = await booking.followTicket(api, request.id, ({ status, position }) =>
    console.log(`ticket: ${status}, position ${position}`),
  )
  if (ticket.outcome) console.log(`ticket outcome: ${expect(ticket.outcome, 'Booked').booking.status}`)
}

async function cancel(api: Api, bookingId: string): Promise<void> {
  expect(await booking.cancel(api, bookingId, booking.newKey()), 'BookingCancelled')
}

/** Returns the outcome as the given type. An app shows the `message` of any other type instead. */
function expect<Outcome extends { __typename: string }, Name extends Outcome['__typename']>(
  outcome: Outcome,
  name: Name,
): Extract<Outcome, { __typename: Name }> {
  if (outcome.__typename === name) return outcome as Extract<Outcome, { __typename: Name }>
  const { code, message } = outcome as { code?: string; message?: string }
  throw new Error(message ? `${code}: ${message}` : `${name} expected: ${JSON.stringify(outcome)}`)
}

function fail(error: Error): never {
  throw error
}
