import {setTimeout as sleep} from "node:timers/promises";

import {Attempt} from "./attempt.js";
import {HTTPDoor} from "./door.js";
import {Failure, Final, NotApplied, Over, Refused, SlowDown, Wait, reason} from "./errors.js";
import {mistakeKind, mistaken, place} from "./mistakes.js";
import {Outage} from "./outage.js";
import {jsonType} from "./payload.js";
import {Hider, fill, fromEnvironment} from "./secrets.js";
import {clip, encode, identity, itemsOf, maxPayloadBytes} from "./task.js";
import type {Agent} from "./agent.js";
import type {Door, Message, Taken} from "./door.js";
import type {S3Client} from "./s3.js";
import type {Secrets} from "./secrets.js";
import type {JSONValue} from "./task.js";

export interface RunOptions {
  /** How many attempts run at once, 1 to 1000; 64 unless said. */
  concurrency?: number;
  /** How many milliseconds those that run may go on after stop; 25,000 unless said. */
  patienceMs?: number;
  /** Gives the value of a secret by its name; MAKEGOOD_SECRET_NAME of the environment unless said. */
  secrets?: Secrets;
  /** Hears of what goes wrong, and never of payloads; standard error unless said. */
  log?: (line: string) => void;
}

// How many attempts run at once where nothing is said, and how many may.
const defaultConcurrency = 64, maxConcurrency = 1000;
// How long after it was told to stop an action that runs still is waited for, so that it may say why it stopped.
const lastWordsMs = 2000;

/** Runs one agent. What has not stopped when patience has run out ends in silence, and is tried again elsewhere. */
export class Runner {
  readonly #agent: Agent;
  readonly #door: Door;
  readonly #concurrency: number;
  readonly #patienceMs: number;
  readonly #secrets: Secrets;
  readonly #log: (line: string) => void;
  readonly #outage: Outage;
  readonly #running = new Map<Attempt, Promise<void>>();
  readonly #stop = new AbortController();

  constructor(agent: Agent, door: Door, options: RunOptions = {}) {
    if (agent.actions().length === 0) throw new TypeError(`agent ${agent.name}: no actions`);
    this.#agent = agent;
    this.#door = door;
    this.#concurrency = options.concurrency ?? defaultConcurrency;
    if (!(this.#concurrency >= 1 && this.#concurrency <= maxConcurrency)) throw new RangeError(`concurrency ${this.#concurrency}: want 1 to ${maxConcurrency}`);
    this.#patienceMs = options.patienceMs ?? 25_000;
    this.#secrets = options.secrets ?? fromEnvironment;
    this.#log = options.log ?? ((line) => console.error(`makegood-agent: ${line}`));
    this.#outage = new Outage(this.#log);
  }

  /** Takes tasks until stop is called, and resolves when nothing runs any more, or patience has run out. */
  async run(): Promise<void> {
    this.#log(`ready: agent ${this.#agent.name}, up to ${this.#concurrency} attempts at once`);
    const stopped = this.#stop.signal;
    let pauseMs = 0;
    while (!stopped.aborted) {
      if (this.#running.size >= this.#concurrency) {
        await Promise.race([...this.#running.values(), aborted(stopped)]);
        continue;
      }
      try {
        this.#begin(await this.#door.take(this.#agent.name, this.#concurrency - this.#running.size));
        pauseMs = 0;
      } catch (err) {
        if (stopped.aborted) break;
        pauseMs = Math.min(Math.max(100, pauseMs * 2), 5000);
        this.#outage.failed("a request for tasks", reason(err));
        await sleep(scattered(pauseMs), undefined, {signal: stopped}).catch(() => {});
      }
    }
    try {
      this.#begin(await this.#door.last(this.#agent.name, this.#concurrency));
    } catch (err) {
      this.#log(`what was on its way at the end was lost: ${reason(err)}`);
    }
    await this.#drain();
  }

  /** Takes no more tasks, and lets run resolve when those that run are done. */
  stop(): void {
    this.#stop.abort();
    this.#door.stop();
  }

  #begin(taken: Taken[]): void {
    for (const one of taken) {
      const attempt = new Attempt(one, this.#door, this.#outage);
      const done = this.#attempt(one, attempt).catch((err: unknown) => this.#log(`${named(one)}: ${reason(err)}`)).finally(() => {
        attempt.close();
        this.#running.delete(attempt);
      });
      this.#running.set(attempt, done);
    }
  }

  async #drain(): Promise<void> {
    if (await this.#idleWithin(this.#patienceMs)) return;
    for (const attempt of this.#running.keys()) attempt.stop(new Over("the process ends"));
    if (!await this.#idleWithin(lastWordsMs)) this.#log(`${this.#running.size} attempts did not stop, and are given up`);
  }

  async #idleWithin(ms: number): Promise<boolean> {
    const patience = new AbortController();
    await Promise.race([Promise.all(this.#running.values()), sleep(ms, undefined, {signal: patience.signal}).catch(() => {})]);
    patience.abort();
    return this.#running.size === 0;
  }

  async #attempt(taken: Taken, attempt: Attempt): Promise<void> {
    await this.#reply(taken, attempt, await this.#work(taken, attempt));
  }

  /** Does the work, and gives what is to be replied. */
  async #work(taken: Taken, attempt: Attempt): Promise<Message> {
    let hider = new Hider(new Map());
    try {
      if (attempt.leftMs() <= 0) throw new NotApplied("it took too long to get the task");
      const filled = await fill(attempt.task, this.#secrets);
      hider = filled.hider;
      attempt.task = {...attempt.task, input: filled.input};
      let did: unknown;
      try {
        did = await this.#handle(attempt, hider);
      } catch (err) {
        if (!mistaken(err)) throw err;
        this.#log(`${named(taken)}: a mistake in the program: ${hider.text(err.stack ?? reason(err))}`);
        return message(taken, "StepFailed", {error: failure(err, attempt, hider, mistakeKind, place(err))});
      }
      const output = hider.output(json(did)) ?? null;
      return message(taken, "StepSucceeded", {output: await kept(output, attempt)});
    } catch (err) {
      if (err instanceof Wait) return message(taken, "StepWaiting", {deadline: err.deadline.toISOString()});
      return message(taken, "StepFailed", {error: failure(err, attempt, hider)});
    }
  }

  /** Calls the agent. For a batch it is called for each item, one after the other, and the output has an answer for each. */
  async #handle(attempt: Attempt, hider: Hider): Promise<unknown> {
    const task = attempt.task, places = task.batch;
    if (!places) return this.#agent.handle(attempt);
    const answers: Message[] = [];
    try {
      for (const [i, item] of itemsOf(task, places).entries()) {
        attempt.task = item;
        answers.push({item: places[i] ?? 0, ...await this.#answer(attempt, hider)});
      }
    } finally {
      attempt.task = task;
    }
    return answers;
  }

  /** Does one item of a batch. A mistake in the program is the failure of the whole attempt. */
  async #answer(attempt: Attempt, hider: Hider): Promise<Message> {
    try {
      if (attempt.leftMs() <= 0) throw new NotApplied("the attempt ended before the item began");
      return {output: json(await this.#agent.handle(attempt))};
    } catch (err) {
      if (mistaken(err)) throw err;
      const why = err instanceof Wait ? new Final("it would wait for another party, and items of a batch cannot: leave map.batch out") : err;
      return {error: failure(why, attempt, hider)};
    }
  }

  /** Says what became of an attempt, for as long as anything may be said. */
  async #reply(taken: Taken, attempt: Attempt, said: Message): Promise<void> {
    let pauseMs = 50;
    while (!attempt.silent()) {
      try {
        await this.#door.reply(taken, said);
        await this.#door.finish(taken);
        return;
      } catch (err) {
        if (err instanceof Refused) {
          if (said["type"] === "StepFailed") {
            this.#log(`${named(taken)}: the reply is refused: ${err.message}`);
            return;
          }
          said = message(taken, "StepFailed", {error: {message: clip(`the reply cannot be sent: ${err.message}`), retryable: false, applied: "unknown"}});
          continue;
        }
        this.#outage.failed(`the reply of ${named(taken)}`, reason(err));
        await sleep(Math.min(scattered(pauseMs), attempt.lastWordMs()));
        pauseMs = Math.min(pauseMs * 2, 2000);
      }
    }
    // Somebody else may have begun: not even an error is said.
    this.#log(`${named(taken)}: too late, nothing was said`);
    await this.#door.finish(taken);
  }
}

function message(taken: Taken, type: string, rest: Message): Message {
  return {
    v: 1, type, ...identity(taken.task), startedAt: taken.startedAt, ...rest,
    ...(taken.lockedBy ? {lockedBy: taken.lockedBy} : {}),
  };
}

/** An output as JSON. Why it is none is final, but the effect has happened. */
function json(output: unknown): JSONValue {
  try {
    const text = JSON.stringify(output) as string | undefined;
    return text === undefined ? null : JSON.parse(text) as JSONValue;
  } catch (err) {
    throw new Final(`the output is not JSON: ${reason(err)}`, {cause: err});
  }
}

/** An output as it is said: what is too large for a message, written as it is sent, is written as a payload. */
async function kept(output: JSONValue, attempt: Attempt): Promise<JSONValue> {
  const text = Buffer.from(encode(output));
  if (text.length <= maxPayloadBytes) return output;
  if (!attempt.payloads.can) {
    throw new Final(`the output has ${text.length} bytes, the limit is ${maxPayloadBytes}, and there is no payload store where this agent runs`);
  }
  try {
    return await attempt.writePayload(text, jsonType) as unknown as JSONValue;
  } catch (err) {
    if (!(err instanceof Failure)) throw err;
    throw new Failure(`the output of ${text.length} bytes cannot be kept: ${err.message}`, {final: err.final, cause: err});
  }
}

/** What is said of a failure. kind and at are those of a mistake. */
function failure(err: unknown, attempt: Attempt, hider: Hider, kind = "", at = ""): Message & {[name: string]: JSONValue} {
  const known = err instanceof Failure ? err : undefined;
  const said = known?.kind || kind;
  const text = known ? known.message : reason(err);
  return {
    message: clip(hider.text(attempt.leftMs() <= 0 ? `out of time: ${text}` : text), at), retryable: !known?.final,
    applied: known?.notApplied ? "no" : "unknown",
    ...(said ? {kind: said} : {}),
    ...(known?.retryAfterMs ? {retryAfterMs: Math.max(0, Math.floor(known.retryAfterMs))} : {}),
    ...(known instanceof SlowDown ? {slowDown: true} : {}),
  };
}

function named(taken: Taken): string {
  return `${taken.task.job}/${taken.task.step}#${taken.task.attempt}`;
}

function scattered(ms: number): number {
  return ms * (0.5 + Math.random() / 2);
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener("abort", () => resolve(), {once: true});
  });
}

/** The SDK's client of S3, which only a stack with payloads needs. */
async function s3(): Promise<S3Client> {
  const {S3} = await import("@aws-sdk/client-s3");
  return new S3({});
}

/** MAKEGOOD_URL (and MAKEGOOD_TOKEN): an engine. MAKEGOOD_TABLE and MAKEGOOD_QUEUE_PREFIX (and MAKEGOOD_PAYLOADS): a stack on AWS. */
export async function doorFromEnvironment(): Promise<Door> {
  const env = process.env;
  if (env["MAKEGOOD_URL"]) return new HTTPDoor(env["MAKEGOOD_URL"], {token: env["MAKEGOOD_TOKEN"] ?? ""});
  if (env["MAKEGOOD_TABLE"]) {
    const {S3Payloads, SQSDoor} = await import("./sqs.js");
    const where = env["MAKEGOOD_PAYLOADS"];
    return new SQSDoor(env["MAKEGOOD_TABLE"], env["MAKEGOOD_QUEUE_PREFIX"] ?? "", {payloads: where ? new S3Payloads(where, await s3()) : undefined});
  }
  throw new Error("environment: want MAKEGOOD_URL, or MAKEGOOD_TABLE and MAKEGOOD_QUEUE_PREFIX");
}

/**
 * Runs an agent until SIGTERM or SIGINT, then lets what runs end, for patienceMs. A second signal ends the process. Without
 * a door the environment says which; see doorFromEnvironment.
 */
export async function run(agent: Agent, door?: Door, options: RunOptions = {}): Promise<void> {
  const runner = new Runner(agent, door ?? await doorFromEnvironment(), options);
  let signals = 0;
  const onSignal = (signal: NodeJS.Signals) => {
    if (++signals > 1) process.exit(signal === "SIGINT" ? 130 : 143);
    runner.stop();
  };
  process.on("SIGTERM", onSignal).on("SIGINT", onSignal);
  try {
    await runner.run();
  } finally {
    process.off("SIGTERM", onSignal).off("SIGINT", onSignal);
  }
}
