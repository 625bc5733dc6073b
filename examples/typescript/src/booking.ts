// What an app does with slots, in terms of either client.
import type { Api } from './api.js'
import {
  BookDocument,
  CancelDocument,
  ConfirmDocument,
  FollowMyBookingsDocument,
  FollowTicketDocument,
  JoinWaitlistDocument,
  ListSlotsDocument,
  MyPlaceDocument,
  RequestTicketDocument,
  WatchSlotsDocument,
} from './generated.js'
import type {
  BookMutation,
  CancelMutation,
  ConfirmMutation,
  FollowMyBookingsSubscription,
  FollowTicketSubscription,
  JoinWaitlistMutation,
  ListSlotsQuery,
  MyPlaceQuery,
  RequestTicketMutation,
  WatchSlotsSubscription,
} from './generated.js'
import { withRetry } from './retry.js'

export type ListedSlot = ListSlotsQuery['slots']['nodes'][number]
export type Availability = WatchSlotsSubscription['slotAvailability']
export type BookOutcome = BookMutation['bookSlot']
export type Ticket = FollowTicketSubscription['ticket']
export type MyPlace = NonNullable<MyPlaceQuery['slot']>

/** A new key for each intention of the user. Store it with a form that may be sent again. */
export const newKey = () => crypto.randomUUID()

/** Lists all slots with places left that match the words. */
export async function listSlots(api: Api, text: string): Promise<ListedSlot[]> {
  const found: ListedSlot[] = []
  let after: string | null = null
  do {
    const variables: { text: string; after: string | null } = { text, after }
    const { slots } = await withRetry(() => api.query(ListSlotsDocument, variables))
    found.push(...slots.nodes)
    after = slots.pageInfo.hasNextPage ? slots.pageInfo.endCursor : null
  } while (after)
  return found
}

/**
 * Passes on the state of the slots, now and after every change. Returns a function that stops it.
 * After a reconnect the server sends the current state again; the version orders all of them.
 */
export function watchSlots(
  api: Api,
  slotIds: string[],
  onState: (state: Availability) => void,
  onError: (error: Error) => void,
): () => void {
  const versions = new Map<string, number>()
  return api.subscribe(WatchSlotsDocument, { slotIds }, {
    next: ({ slotAvailability: state }) => {
      if (state.version <= (versions.get(state.slotId) ?? -1)) return
      versions.set(state.slotId, state.version)
      onState(state)
    },
    error: onError,
  })
}

/** Books a place, or holds it until the user confirms. However often it is sent, it has one effect. */
export function book(api: Api, slotId: string, key: string, hold = false): Promise<BookOutcome> {
  const input = { slotId, idempotencyKey: key, hold, waitMs: 5000 }
  return withRetry(async () => (await api.mutate(BookDocument, { input })).bookSlot)
}

export function confirm(
  api: Api,
  bookingId: string,
  key: string,
): Promise<ConfirmMutation['confirmBooking']> {
  return withRetry(async () => (await api.mutate(ConfirmDocument, { bookingId, key })).confirmBooking)
}

export function cancel(
  api: Api,
  bookingId: string,
  key: string,
): Promise<CancelMutation['cancelBooking']> {
  return withRetry(async () => (await api.mutate(CancelDocument, { bookingId, key })).cancelBooking)
}

/** Joins the waiting list. After a lost response the retry returns `AlreadyWaiting`, which is fine. */
export function joinWaitlist(
  api: Api,
  slotId: string,
): Promise<JoinWaitlistMutation['joinWaitlist']> {
  return withRetry(async () => (await api.mutate(JoinWaitlistDocument, { slotId })).joinWaitlist)
}

/**
 * Waits for a place: resolves as soon as the user has a booking or an offer (status HELD) in the
 * slot, or is not on its waiting list any more.
 * Each new state of the slot is a reason to read, also the first one after a reconnect.
 * Clients merge equal queries that run at the same time, so a read starts after the last one ended.
 */
export function waitForPlace(api: Api, slotId: string): Promise<MyPlace> {
  return firstMatch(
    (next, fail) => {
      const read = oneAtATime(async () => {
        const { slot } = await withRetry(() => api.query(MyPlaceDocument, { slotId }))
        if (slot) next(slot)
      })
      return watchSlots(api, [slotId], () => read().catch(fail), fail)
    },
    ({ myBooking, myWaitlistEntry }) => myBooking !== null || myWaitlistEntry === null,
  )
}

/** Passes on what others did to the user's bookings, for notifications. Lost events do not repeat. */
export function followMyBookings(
  api: Api,
  onEvent: (event: FollowMyBookingsSubscription['myBookings']) => void,
  onError: (error: Error) => void,
): () => void {
  return api.subscribe(FollowMyBookingsDocument, {}, {
    next: ({ myBookings }) => onEvent(myBookings),
    error: onError,
  })
}

/** Enters the admission queue. The same key returns the same ticket. */
export function requestTicket(
  api: Api,
  slotId: string,
  key: string,
): Promise<RequestTicketMutation['requestBooking']> {
  const input = { slotId, idempotencyKey: key }
  return withRetry(async () => (await api.mutate(RequestTicketDocument, { input })).requestBooking)
}

/** Follows a ticket to its end: ANSWERED with the outcome, LOST or FAILED. */
export function followTicket(
  api: Api,
  id: string,
  onProgress: (ticket: Ticket) => void,
): Promise<Ticket> {
  return firstMatch(
    (next, fail) =>
      api.subscribe(FollowTicketDocument, { id }, { next: ({ ticket }) => next(ticket), error: fail }),
    (ticket) => {
      onProgress(ticket)
      return ticket.status !== 'QUEUED'
    },
  )
}

/** Calls made while `run` is busy cause one more run after it. */
function oneAtATime(run: () => Promise<void>): () => Promise<void> {
  let isBusy = false
  let isDue = false
  return async () => {
    isDue = true
    if (isBusy) return
    isBusy = true
    try {
      while (isDue) {
        isDue = false
        await run()
      }
    } finally {
      isBusy = false
    }
  }
}

/** Resolves with the first value that matches, and then stops watching. */
export function firstMatch<Value>(
  watch: (next: (value: Value) => void, fail: (error: Error) => void) => () => void,
  matches: (value: Value) => boolean,
): Promise<Value> {
  return new Promise<Value>((resolve, reject) => {
    const stop = watch((value) => {
      if (!matches(value)) return
      stop()
      resolve(value)
    }, reject)
  })
}
