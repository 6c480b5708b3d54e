/** Tasks, as they come on the wire (docs/messages.md). */

import {Final} from "./errors.js";

/** What JSON can say. */
export type JSONValue = null | boolean | number | string | JSONValue[] | {[name: string]: JSONValue};

export const maxPayloadBytes = 256 * 1024;
const maxReasonBytes = 1024;

/** What an undo is told of the step that it undoes. */
export interface Undo {
  /** The idempotency key of the step. The remote is asked to refuse it from now on. */
  readonly forwardKey: string;
  readonly outcome: "done" | "unknown";
  /** The step's output; null when the outcome is unknown. */
  readonly output: JSONValue;
  /** The idempotency keys under which the step may have had an effect, the newest first: forwardKey is the last. A step that was
   * begun again after a success (repeat) has several. */
  readonly keys: readonly string[];
}

/** Which secret belongs where into the input. */
export interface TaskSecret {
  readonly path: string;
  readonly at: number;
  readonly name: string;
}

/** One attempt of a step. */
export interface Task {
  readonly job: string;
  readonly workflow: string;
  readonly step: string;
  readonly round: number;
  readonly attempt: number;
  readonly agent: string;
  readonly action: string;
  readonly input: JSONValue;
  /**
   * The places of the items that the task is for, where it is a batch of items of a map: input is the list of their inputs. itemsOf has
   * a task for each, and the runner does one after the other.
   */
  readonly batch?: readonly number[];
  /** The idempotency key, the same over all attempts: pass it on to the remote service. */
  readonly key: string;
  /** How long silence may last, in milliseconds: until the claim, or the last heartbeat, is that old. */
  readonly timeoutMs: number;
  /** How long the attempt may take in all, where its step heartbeats. */
  readonly totalMs?: number;
  /** Nobody claims it: it may run twice. */
  readonly shared: boolean;
  readonly undo?: Undo;
  /** The completion token: whoever holds it may complete this step; see Wait. Empty where the engine gives none. */
  readonly completion: string;
  /** The span of this attempt, as W3C's header of that name: what is begun under it belongs there. Empty where there is none. */
  readonly traceparent: string;
  /** What the reply must carry. Nobody but the kit needs it. */
  readonly token: string;
  readonly replyTo: string;
  readonly birth: string;
  /** Until when it can be claimed, and when a shared one must be replied to, in Unix milliseconds. */
  readonly claimUntil: number;
  readonly completeBy?: number;
  readonly secrets: readonly TaskSecret[];
}

/** A message that a newer release wrote. It is neither done nor poison. */
export class Newer extends Error {
  override name = "Newer";
}

// The types of message that this kit knows, and what the engine tells itself: no release sends those.
const known = new Set([
  "Task", "SecretTask", "Submit", "Submitted", "StepSucceeded", "StepFailed", "StepWaiting", "StepCompleted",
  "WaitExtended", "DeadlinePassed", "Announcement", "AgentSilent", "Quarantined",
]);
const inner = new Set(["AttemptClosed", "DispatchRefused", "Interrupted", "NotHeard", "Requested", "Told"]);

type Fields = {[name: string]: JSONValue | undefined};

/** Reads a task, and ignores the fields that it does not know. Newer; any other error for what can never be understood. */
export function readTask(message: JSONValue): Task {
  const m = object(message);
  const {v: version, type} = m;
  if (typeof version !== "number" || !Number.isInteger(version) || version < 1 || version > 9999 ||
      typeof type !== "string" || !/^[A-Z][A-Za-z]{0,62}$/.test(type)) {
    throw new Error("want a version and a type");
  }
  if (!inner.has(type) && (version > 1 || !known.has(type))) throw new Newer(`version ${version}, type ${type}`);
  if (type !== "Task" && type !== "SecretTask") throw new Error(`want a task, got ${type}`);
  const undo = m["undo"] == null ? undefined : object(m["undo"]);
  const timeoutMs = number(m, "timeoutMs");
  if (timeoutMs <= 0) throw new Error(`timeoutMs ${timeoutMs}`);
  if (typeof m["exclusive"] !== "boolean") throw new Error("exclusive: want true or false");
  return {
    job: text(m, "job"), workflow: String(m["workflow"] ?? ""), step: text(m, "step"), round: number(m, "round"),
    attempt: number(m, "attempt"), agent: text(m, "agent"), action: text(m, "action"), input: m["input"] ?? null,
    key: text(m, "key"), timeoutMs, shared: !m["exclusive"], completion: String(m["completion"] ?? ""),
    traceparent: String(m["traceparent"] ?? ""), token: text(m, "token"),
    replyTo: text(m, "replyTo"), birth: text(m, "birth"), claimUntil: readTime(text(m, "claimUntil")),
    secrets: Array.isArray(m["secrets"]) ? m["secrets"].map(readSecret) : [],
    ...(Array.isArray(m["batch"]) ? {batch: m["batch"].map(Number)} : {}),
    ...(m["totalMs"] ? {totalMs: number(m, "totalMs")} : {}),
    ...(m["completeBy"] ? {completeBy: readTime(text(m, "completeBy"))} : {}),
    ...(undo ? {undo: {
      forwardKey: text(undo, "forwardKey"), outcome: undo["outcome"] === "done" ? "done" as const : "unknown" as const,
      output: undo["output"] ?? null, keys: keysOf(undo),
    }} : {}),
  };
}

/** The task of each item of a batch, with a key of its own, the same over all attempts. */
export function itemsOf(task: Task, batch: readonly number[]): Task[] {
  const {input, undo} = task;
  if (!Array.isArray(input) || input.length !== batch.length) {
    throw new Final(`the input of a batch of ${batch.length} items is no list of so many`, {notApplied: true});
  }
  const done = new Map((Array.isArray(undo?.output) ? undo.output : []).map((answer) => [object(answer)["item"], object(answer)["output"] ?? null]));
  return batch.map((place, i) => {
    const {batch: _, ...item} = {...task, input: input[i] ?? null, key: `${task.key}/${place}`};
    if (!undo) return item;
    const forwardKey = `${undo.forwardKey}/${place}`;
    return {...item, undo: {forwardKey, outcome: done.has(place) ? "done" as const : "unknown" as const, output: done.get(place) ?? null, keys: [forwardKey]}};
  });
}

function keysOf(undo: Fields): string[] {
  const first = text(undo, "forwardKey");
  const keys = [first];
  for (let n = 2; n <= Number(undo["repeats"] ?? 0) + 1; n++) keys.unshift(`${first}/${n}`);
  return keys;
}

function readSecret(value: JSONValue): TaskSecret {
  const m = object(value);
  return {path: String(m["path"] ?? ""), at: m["at"] === undefined ? 0 : number(m, "at"), name: text(m, "name")};
}

function object(value: JSONValue | undefined): Fields {
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw new Error("want an object");
  return value;
}

function text(m: Fields, name: string): string {
  const value = m[name];
  if (typeof value !== "string" || value === "") throw new Error(`${name}: want a text`);
  return value;
}

function number(m: Fields, name: string): number {
  const value = m[name];
  if (typeof value !== "number") throw new Error(`${name}: want a number`);
  return value;
}

/** Reads RFC 3339 as Unix milliseconds. */
export function readTime(time: string): number {
  const at = /^\d{4}-\d\d-\d\dT/.test(time) ? Date.parse(time) : NaN;
  if (Number.isNaN(at)) throw new Error(`${time.slice(0, 40)} is not a time as in RFC 3339`);
  return at;
}

/** What every message about a task must say. */
export function identity(task: Task): {job: string; step: string; attempt: number; token: string} {
  return {job: task.job, step: task.step, attempt: task.attempt, token: task.token};
}

/**
 * Writes JSON as it is sent: UTF-8 carries what is no ASCII as it is, for a limit counts what is sent, and six bytes of each such
 * character would be over one that it keeps. A queue refuses two characters raw.
 */
export function encode(message: unknown): string {
  return JSON.stringify(message).replace(/[\ufffe\uffff]/g, escaped);
}

/** Writes JSON for a header, which carries ASCII alone. */
export function encodeASCII(message: unknown): string {
  return JSON.stringify(message).replace(/[\u007f-\uffff]/g, escaped);
}

function escaped(character: string): string {
  return "\\u" + character.charCodeAt(0).toString(16).padStart(4, "0");
}

/** Shortens a text to what is kept of an error, at a character's edge. */
export function clip(text: string, end = ""): string {
  const bytes = Buffer.from(text), limit = maxReasonBytes - Buffer.byteLength(end);
  if (bytes.length <= limit) return bytes.toString() + end;
  let cut = limit - 3;
  while ((bytes[cut]! & 0xc0) === 0x80) cut--;
  return bytes.subarray(0, cut).toString() + "..." + end;
}

/** A number of milliseconds that never goes back, whatever is done to the clock. */
export function monotonic(): number {
  return performance.now();
}
