/** Where an agent gets its tasks, and says what became of them: over HTTP from an engine. makegood-agent/sqs is the other way. */

import {randomUUID} from "node:crypto";
import * as http from "node:http";
import * as https from "node:https";
import type {Readable} from "node:stream";

import {Ended, Failure, Final, NoAnswer, Refused} from "./errors.js";
import {altered, otherPart, unless} from "./payload.js";
import {encode, encodeASCII, identity, monotonic, readTask} from "./task.js";
import type {PayloadStore, Reference} from "./payload.js";
import type {JSONValue, Task} from "./task.js";

/** A task that is ours until expires. Times are on the monotonic clock, in milliseconds. */
export interface Taken {
  readonly task: Task;
  /** Empty for a shared task, which nobody claims. */
  readonly lockedBy: string;
  readonly startedAt: string;
  /** When its claim was made, or before. */
  readonly began: number;
  /** When silence becomes failure; heartbeats move it. */
  readonly expires: number;
  /** What the door needs in order to be done with the task. */
  readonly ticket?: string;
  /** The DynamoDB table that has the claim; not there where the door is an engine's. */
  readonly table?: string;
}

/** What a heartbeat is answered, and the milliseconds that are left, counted from when it was asked. */
export interface Extended {
  readonly status: "held" | "withdrawn" | "over";
  readonly leftMs: number;
}

export type Message = {[name: string]: JSONValue | undefined};

/** What a runner needs. Each method rejects where it is not known what became of what was asked. */
export interface Door {
  /** Carries large payloads; not there: nobody does. */
  readonly payloads?: PayloadStore | undefined;
  /** Waits for tasks, claims them, and gives them; none where none came, or stop was called. */
  take(agent: string, limit: number): Promise<Taken[]>;
  /** Extends a claim. */
  heartbeat(taken: Taken, progress: JSONValue | undefined): Promise<Extended>;
  /** Says what became of a task. It may be called again. Refused: it can never be taken. */
  reply(taken: Taken, message: Message): Promise<void>;
  /** Is done with a task, whether or not anything was said of it. */
  finish(taken: Taken): Promise<void>;
  /** Ends what waits in take, soon. */
  stop(): void;
  /** Gives what was on its way when take was ended. It does not wait. */
  last(agent: string, limit: number): Promise<Taken[]>;
}

export interface HTTPDoorOptions {
  /** What the engine asks this agent for. */
  token?: string;
  /** Names this process, in LockedBy. */
  instance?: string;
  /** How many seconds a request waits for tasks, at most 20. */
  wait?: number;
  /** Hears of what goes wrong, and never of payloads; standard error unless said. */
  log?: (line: string) => void;
}

const answerWithinMs = 30_000;
// How long an engine has to say whether it wants a body. Some proxies never say it.
const continueWithinMs = 1000;

interface Given {
  heldMs: number;
  tasks: {task: JSONValue; lockedBy?: string; startedAt: string; leftMs: number}[];
}

/** The door of an engine: makegood dev --outside NAME, or engine.Options.Outside. */
export class HTTPDoor implements Door, PayloadStore {
  readonly payloads: PayloadStore = this;
  readonly #url: string;
  readonly #shows: Record<string, string>;
  readonly #instance: string;
  readonly #wait: number;
  readonly #log: (line: string) => void;
  readonly #stop = new AbortController();
  #request: string | undefined;

  constructor(url: string, options: HTTPDoorOptions = {}) {
    if (!/^https?:$/.test(new URL(url).protocol)) throw new TypeError(`${url}: want the address of an engine, such as http://127.0.0.1:4777`);
    this.#url = url.replace(/\/+$/, "");
    this.#shows = options.token ? {Authorization: `Bearer ${options.token}`} : {};
    this.#instance = options.instance ?? "ts-" + randomUUID().slice(0, 12);
    this.#wait = options.wait ?? 20;
    this.#log = options.log ?? ((line) => console.error(`makegood-agent: ${line}`));
  }

  async take(agent: string, limit: number): Promise<Taken[]> {
    // The same request again is given the same tasks: what it was given when the connection broke is not lost.
    this.#request ??= randomUUID();
    return this.#take(agent, limit, this.#wait, this.#stop.signal);
  }

  async last(agent: string, limit: number): Promise<Taken[]> {
    return this.#request === undefined ? [] : this.#take(agent, limit, 0);
  }

  async #take(agent: string, limit: number, wait: number, stop?: AbortSignal): Promise<Taken[]> {
    const asked = monotonic();
    const given = await this.#post(`/api/agents/${agent}/tasks`,
      {instance: this.#instance, max: Math.min(limit, 10), wait, request: this.#request}, wait * 1000 + answerWithinMs, stop) as unknown as Given;
    this.#request = undefined;
    // Our clock and the engine's are not compared: its answer left it no earlier than that.
    const answered = asked + given.heldMs;
    return given.tasks.flatMap((one) => {
      try {
        const task = readTask(one.task), expires = answered + one.leftMs;
        return [{task, lockedBy: one.lockedBy ?? "", startedAt: one.startedAt, began: expires - task.timeoutMs, expires}];
      } catch (err) {
        // It ends in silence; those beside it are none the worse.
        this.#log(`a task cannot be read: ${String(err)}`);
        return [];
      }
    });
  }

  async heartbeat(taken: Taken, progress: JSONValue | undefined): Promise<Extended> {
    const said = await this.#post(`/api/agents/${taken.task.agent}/heartbeats`,
      {...identity(taken.task), lockedBy: taken.lockedBy, progress}, Math.min(Math.max(1000, taken.task.timeoutMs / 4), answerWithinMs)) as unknown as
      {status: Extended["status"]; leftMs?: number};
    return {status: said.status, leftMs: said.leftMs ?? 0};
  }

  async reply(taken: Taken, message: Message): Promise<void> {
    await this.#post(`/api/agents/${taken.task.agent}/replies`, message, answerWithinMs);
  }

  async finish(_taken: Taken): Promise<void> {}

  stop(): void {
    this.#stop.abort();
  }

  async openPayload(taken: Taken, reference: Reference, first: number, end: number, signal: AbortSignal): Promise<Readable> {
    const asked = new URLSearchParams({bytes: String(reference.bytes), ...(reference.by ? {by: reference.by} : {})});
    const part = first > 0 || end < reference.bytes ? {Range: `bytes=${first}-${end - 1}`} : {};
    const request = this.#about("GET", `/${reference.sha256}?${asked}`, taken, part, signal);
    request.end();
    const response = await answered(request, answerWithinMs);
    if (response.statusCode !== 200 && response.statusCode !== 206) throw await refused(response);
    const wrong = otherThan(response, reference.bytes, first, end);
    if (wrong) {
      request.destroy();
      throw wrong;
    }
    return response;
  }

  async sendPayload(taken: Taken, type: string, pieces: AsyncIterable<Uint8Array>, length: number | undefined, signal: AbortSignal): Promise<JSONValue> {
    const request = this.#about("PUT", "", taken, {
      "Content-Type": type || "application/octet-stream", ...(length === undefined ? {} : {"Content-Length": String(length)}),
      // What is refused is not sent: an answer that comes while it is being sent may be lost with the connection.
      ...(length === 0 ? {} : {Expect: "100-continue"}),
    }, signal);
    const answer = answered(request), over = new AbortController();
    answer.catch(() => {}).finally(() => over.abort());
    try {
      const body = sendBody(request, pieces, length === 0, over.signal);
      await body.catch((err: unknown) => {
        if (!over.signal.aborted) throw err; // It was refused, or the line broke: the answer says which.
      });
      const response = await within(answer, answerWithinMs);
      if (response.statusCode !== 201) throw await refused(response);
      return referenceIn(await textOf(response));
    } finally {
      // What pieces threw ends the connection before the body has ended, and nothing is stored.
      request.destroy();
    }
  }

  /** Begins a request about payloads. It says for which attempt in a header: URLs are kept in logs. */
  #about(method: string, below: string, taken: Taken, headers: Record<string, string>, signal: AbortSignal): http.ClientRequest {
    const url = new URL(`${this.#url}/api/agents/${taken.task.agent}/payloads${below}`);
    const holder = encodeASCII({...identity(taken.task), ...(taken.lockedBy ? {lockedBy: taken.lockedBy} : {})});
    // Each on a connection of its own, which ends with it.
    return (url.protocol === "https:" ? https : http).request(url, {
      method, signal, agent: false, headers: {"Makegood-Holder": holder, "Accept-Encoding": "identity", ...this.#shows, ...headers},
    });
  }

  async #post(path: string, body: unknown, withinMs: number, stop?: AbortSignal): Promise<JSONValue> {
    const {status, answer} = await this.#exchange(path, encode(body), withinMs, stop);
    if (status === 200) return JSON.parse(answer) as JSONValue;
    const {why} = problem(answer);
    if (status === 400 || status === 413) throw new Refused(`${status}: ${why}`);
    throw new Error(`${status}: ${why}`);
  }

  async #exchange(path: string, body: string, withinMs: number, stop?: AbortSignal): Promise<{status: number; answer: string}> {
    const end = new AbortController(), abort = () => end.abort(stop?.reason ?? new Error(`no answer within ${withinMs} ms`));
    const timer = setTimeout(abort, withinMs);
    stop?.addEventListener("abort", abort);
    if (stop?.aborted) abort();
    try {
      const response = await fetch(this.#url + path, {
        method: "POST", headers: {"Content-Type": "application/json", ...this.#shows}, body, signal: end.signal,
      });
      return {status: response.status, answer: await response.text()};
    } finally {
      clearTimeout(timer);
      stop?.removeEventListener("abort", abort);
    }
  }
}

/** What is wrong, and whether the engine says that another attempt would be told the same. */
function problem(answer: string): {why: string; final: boolean} {
  try {
    const said = JSON.parse(answer) as {error?: unknown; final?: unknown};
    if (said.error !== undefined) return {why: String(said.error), final: said.final === true};
  } catch {
    // It was no answer of ours.
  }
  return {why: answer.slice(0, 200), final: false};
}

function referenceIn(answer: string): JSONValue {
  try {
    return JSON.parse(answer) as JSONValue;
  } catch (err) {
    throw new NoAnswer(`the answer is no reference, but ${JSON.stringify(answer.slice(0, 200))}`, {cause: err});
  }
}

/** Why what is answered cannot be the bytes that were asked for, if it cannot. */
function otherThan({statusCode, headers}: http.IncomingMessage, bytes: number, first: number, end: number): Error | undefined {
  const {"content-encoding": encoding = "identity", "content-length": length, "content-range": range} = headers;
  if (encoding !== "identity") return new Final(`${altered}: it comes encoded as ${encoding}, whatever is on the way`);
  const want = statusCode === 206 ? end - first : bytes;
  if (length !== undefined && Number(length) !== want) return new Final(`${altered}: ${length} bytes are there, want ${want}`);
  if (statusCode === 206) return otherPart(range, bytes, first, end);
  return first > 0 ? new NoAnswer("a part was asked for, and the answer has no part") : undefined;
}

/** The error that an answer about a payload stands for. What is final, and that the attempt is over, the engine says. */
async function refused(response: http.IncomingMessage): Promise<Error> {
  const status = response.statusCode ?? 0, {why: text, final} = problem(await textOf(response)), why = `${status}: ${text}`;
  if (final) return new Final(why);
  if (status === 409) return new Ended(why);
  return status >= 500 || status === 429 ? new NoAnswer(why) : new Failure(why);
}

/** Sends the body of a request, if it is wanted. It rejects when the request is over before. */
async function sendBody(request: http.ClientRequest, pieces: AsyncIterable<Uint8Array>, empty: boolean, over: AbortSignal): Promise<void> {
  // What can be read only once is not begun where nobody listens.
  await unless(over, wanted(request, empty));
  const from = pieces[Symbol.asyncIterator]();
  for (let begun = monotonic(); ;) {
    const {done, value: piece} = await unless(over, from.next());
    if (done) break;
    if (!request.write(piece)) await unless(over, new Promise((resolve) => request.once("drain", resolve)));
    // A line that takes all at once would let nothing else run: no timer of another attempt, and no answer either.
    if (monotonic() - begun > 5) {
      await new Promise((resolve) => setImmediate(resolve));
      begun = monotonic();
    }
  }
  request.end();
}

/** Resolves when the body of a request may begin: it is asked for, or nobody has said anything for so long. An empty one is not waited for. */
function wanted(request: http.ClientRequest, empty: boolean): Promise<void> {
  return new Promise((resolve) => {
    let timer: NodeJS.Timeout | undefined;
    request.once("continue", resolve).once("close", () => clearTimeout(timer));
    request.once("socket", (socket) => {
      socket.once("encrypted" in socket ? "secureConnect" : "connect", () => { timer = setTimeout(resolve, empty ? 0 : continueWithinMs); });
    });
    request.flushHeaders();
  });
}

/** The answer to a request. */
function answered(request: http.ClientRequest, withinMs?: number): Promise<http.IncomingMessage> {
  const answer = new Promise<http.IncomingMessage>((resolve, reject) => {
    // It is listened to for as long as there is a request: an error that nobody hears ends the process.
    request.once("response", resolve).on("error", (err) => reject(new NoAnswer(err.message, {cause: err})));
  });
  return withinMs === undefined ? answer : within(answer, withinMs).catch((err: unknown) => {
    request.destroy();
    throw err;
  });
}

async function within<T>(answer: Promise<T>, ms: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new NoAnswer(`no answer within ${ms} ms`)), ms);
  });
  try {
    return await Promise.race([answer, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** The text of an answer, as far as it came. */
async function textOf(response: http.IncomingMessage): Promise<string> {
  const read: Buffer[] = [], late = setTimeout(() => response.destroy(), answerWithinMs);
  try {
    for await (const piece of response) read.push(piece as Buffer);
  } catch {
    // It broke off; what it says so far may do.
  } finally {
    clearTimeout(late);
  }
  return Buffer.concat(read).toString();
}
