// The shipping of the order sample, in TypeScript: MAKEGOOD_URL is the engine, MAKEGOOD_SHOP the shop.
//
//   makegood dev --outside payments --outside shipping
//   MAKEGOOD_URL=http://127.0.0.1:4777 MAKEGOOD_SHOP=http://127.0.0.1:4790 node shipping.js

import {Agent, Failure, Final, run} from "makegood-agent";
import type {Attempt} from "makegood-agent";

interface Order {
  order: string;
  amount: number;
}

const shop = process.env["MAKEGOOD_SHOP"] ?? "http://127.0.0.1:4790";

/** Makes exactly one request: trying again is Makegood's. */
async function ask(path: string, order: Order, attempt: Attempt): Promise<unknown> {
  const {key, attempt: number, undo} = attempt.task;
  const response = await fetch(shop + path, {
    method: "POST", body: JSON.stringify(order), signal: attempt.signal,
    headers: {
      "Content-Type": "application/json", "Idempotency-Key": key, "Makegood-Attempt": String(number),
      ...(undo ? {"Makegood-Forward-Key": undo.forwardKey, "Makegood-Outcome": undo.outcome} : {}),
    },
  });
  const body = await response.text();
  if (response.ok) return JSON.parse(body);
  // Of these nobody knows whether they had their effect.
  if (response.status >= 500 || response.status === 429) throw new Failure(`${response.status}: ${body}`);
  throw new Final(`${response.status}: ${body}`, {notApplied: true});
}

await run(new Agent("shipping")
  .do<Order>("ship", (order, attempt) => ask("/shipping/ship", order, attempt))
  // Whether it was done or nobody knows, the shop knows by the forward key.
  .undo<Order>("cancel", (order, _done, attempt) => ask("/shipping/cancel", order, attempt)));
