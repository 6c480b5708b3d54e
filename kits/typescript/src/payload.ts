/** Large payloads: bytes that are too large for a message, written once and passed on by reference (docs/large-payloads.md). */

import {createHash} from "node:crypto";
import {setMaxListeners} from "node:events";
import {createReadStream} from "node:fs";
import {stat} from "node:fs/promises";
import {Readable} from "node:stream";

import {Ended, Failure, Final, NoAnswer, NotApplied} from "./errors.js";
import type {Attempt} from "./attempt.js";
import type {Taken} from "./door.js";
import type {JSONValue} from "./task.js";

const mark = "$payload";
export const jsonType = "application/json";
const maxLargePayloadBytes = 100 << 20;
const maxDecodedPayloadBytes = 16 << 20;
const maxTypeBytes = 100;
const pieceBytes = 64 << 10;
// How often in a row bytes are asked for, or sent, before the attempt fails, and the longest wait between.
const maxTries = 8, maxPauseMs = 2000;
// How long a piece may be on its way.
const pieceWithinMs = 30_000;
export const altered = "the bytes of the payload are not those written";

/** What stands for the bytes in JSON. It may stand anywhere in an output. */
export type PayloadReference = {$payload: {sha256: string; bytes: number; type?: string; by?: string}};

/** What a payload is written from. Only what can be read again, bytes or a file, is sent again where the line broke. */
export type PayloadSource = Uint8Array | {file: string | URL} | AsyncIterable<Uint8Array> | Iterable<Uint8Array>;

/** The inside of a reference. */
export interface Reference {
  readonly sha256: string;
  readonly bytes: number;
  readonly type: string;
  readonly by: string;
}

/**
 * What a door has that carries payloads. Each method asks once. It rejects with a Final where no other attempt would do better, with
 * an Ended where the attempt has ended, and with a NoAnswer where it is to be asked again.
 */
export interface PayloadStore {
  /** Opens the bytes from first to end, which is the one behind the last. They may end too early. */
  openPayload(taken: Taken, reference: Reference, first: number, end: number, signal: AbortSignal): Promise<Readable>;
  /** Sends bytes, and gives their reference. length: how many there will be, if that is known. What pieces throws it throws, and nothing is stored then. */
  sendPayload(taken: Taken, type: string, pieces: AsyncIterable<Uint8Array>, length: number | undefined, signal: AbortSignal): Promise<JSONValue>;
}

/** Writes and reads the payloads of one attempt's job. */
export class Payloads {
  readonly #attempt: Attempt;
  readonly #taken: Taken;
  readonly #store: PayloadStore | undefined;
  readonly #open = new Set<AbortController>();

  constructor(attempt: Attempt, taken: Taken, store: PayloadStore | undefined) {
    this.#attempt = attempt;
    this.#taken = taken;
    this.#store = store;
  }

  /** Whether the door carries any. */
  get can(): boolean {
    return this.#store !== undefined;
  }

  /** Lets go of what nobody has read to its end. */
  close(): void {
    for (const one of this.#open) one.abort();
  }

  async open(value: unknown, offset: number, length: number | undefined): Promise<Readable> {
    const store = this.#needed(), reference = referenceOf(value), end = length === undefined ? reference.bytes : offset + length;
    if (!(Number.isSafeInteger(offset) && Number.isSafeInteger(end) && 0 <= offset && offset <= end && end <= reference.bytes)) {
      throw new Final(`bytes ${offset} to ${end} of a payload of ${reference.bytes}`);
    }
    const gone = this.#begin();
    const ask = (first: number) => this.#again(() => store.openPayload(this.#taken, reference, first, end, gone.signal));
    try {
      const body = offset < end || reference.bytes === 0 ? await ask(offset) : Readable.from([]);
      const stream = Readable.from(pieces(reference, offset, end, body, ask), {objectMode: false, highWaterMark: pieceBytes});
      return stream.once("close", () => this.#end(gone));
    } catch (err) {
      this.#end(gone);
      throw err;
    }
  }

  async write(source: PayloadSource, type: string): Promise<PayloadReference> {
    const store = this.#needed();
    checkType(type);
    const given = await givenOf(source), gone = this.#begin();
    let counted = new Counted(given, gone.signal);
    try {
      return await this.#again(async () => {
        counted = new Counted(given, gone.signal);
        const pieces = counted.pieces();
        try {
          const answer = await store.sendPayload(this.#taken, type, pieces, given.length, gone.signal);
          const reference = readReference(answer);
          if (typeof reference === "string") throw new NoAnswer(`the answer is no reference: ${reference}`);
          counted.check(reference);
          return answer as unknown as PayloadReference;
        } finally {
          // Whoever sent them may have stopped anywhere: a file is closed.
          void pieces.return().catch(() => {});
        }
      }, () => given.rereadable || !counted.begun);
    } finally {
      this.#end(gone);
    }
  }

  /** The JSON that a value is, where it is nothing but a reference to such; any other is itself. */
  async value(what: string, value: JSONValue): Promise<JSONValue> {
    try {
      return await this.#decoded(value);
    } catch (err) {
      throw unread(what, err);
    }
  }

  /** The same for an undo: what cannot be read into memory as JSON is given as the reference that it is, so that it is undone anyway. */
  async told(what: string, value: JSONValue): Promise<JSONValue> {
    try {
      return await this.#decoded(value);
    } catch (err) {
      if (err instanceof NoValue) return value;
      throw unread(what, err);
    }
  }

  async #decoded(value: JSONValue): Promise<JSONValue> {
    const reference = readReference(value);
    if (typeof reference === "string") return value;
    const {type, bytes} = reference;
    if (type !== jsonType) throw new NoValue(`is a payload of type "${type}", and the action takes JSON: declare it with {references: true}`);
    if (bytes > maxDecodedPayloadBytes) {
      throw new NoValue(`is a payload of ${bytes} bytes, and at most ${maxDecodedPayloadBytes} are read into memory: declare the action with {references: true}`);
    }
    const read: Buffer[] = [];
    for await (const piece of await this.open(value, 0, undefined)) read.push(piece as Buffer);
    return parsed(Buffer.concat(read).toString());
  }

  #needed(): PayloadStore {
    if (!this.#store) throw new Final("there is no payload store where this agent runs: its door carries none (docs/large-payloads.md)");
    return this.#store;
  }

  /** Begins what ends with the attempt at the latest. */
  #begin(): AbortController {
    const gone = new AbortController(), {signal} = this.#attempt;
    setMaxListeners(0, gone.signal); // Each request of it may listen.
    const stop = () => gone.abort(signal.reason);
    signal.addEventListener("abort", stop, {once: true});
    gone.signal.addEventListener("abort", () => signal.removeEventListener("abort", stop), {once: true});
    this.#open.add(gone);
    return gone;
  }

  #end(gone: AbortController): void {
    this.#open.delete(gone);
    gone.abort();
  }

  /** Does something until it is done, fails for good, has failed so often, or may not be done again. */
  async #again<T>(act: () => Promise<T>, may = () => true): Promise<T> {
    for (let tried = 1, pauseMs = 100; ; tried++, pauseMs = Math.min(2 * pauseMs, maxPauseMs)) {
      this.#attempt.check();
      try {
        return await act();
      } catch (err) {
        if (err instanceof Ended) this.#attempt.over();
        if (!(err instanceof NoAnswer)) throw err;
        this.#attempt.check(); // Of what the end of the work has cut off, that end is the reason.
        if (tried === maxTries || !may()) throw new Failure(`the payload could not be carried: ${err.message}`, {cause: err});
      }
      await this.#attempt.wait(pauseMs * (0.5 + Math.random() / 2));
    }
  }
}

/** Reads on from where a download broke off. Whoever has read all has read what was written: else it throws. */
async function* pieces(reference: Reference, first: number, end: number, body: Readable, ask: (first: number) => Promise<Readable>): AsyncGenerator<Uint8Array> {
  // Of a part no hash tells whether it is what was written.
  const hash = end - first === reference.bytes ? createHash("sha256") : undefined;
  const checked = (at: number) => {
    if (at === end && hash && hash.digest("hex") !== reference.sha256) throw new Final(`${altered}: its hash is another`);
    return at;
  };
  for (let at = first === end ? checked(end) : first, broken = 0; at < end; body = await ask(at)) {
    let got: Uint8Array | Error;
    try {
      const from = body[Symbol.asyncIterator]() as AsyncIterator<Uint8Array>;
      while (at < end && !((got = await next(from)) instanceof Error)) {
        broken = 0;
        const piece = got.subarray(0, end - at);
        hash?.update(piece);
        at = checked(at + piece.length);
        yield piece;
      }
    } finally {
      body.destroy();
    }
    if (at === end) return;
    if (++broken === maxTries) throw new Failure(`the payload broke off after ${at} of ${reference.bytes} bytes: ${(got! as Error).message}`);
  }
  body.destroy();
}

/** The next piece, or why there is none. */
async function next(from: AsyncIterator<Uint8Array>): Promise<Uint8Array | Error> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<Error>((resolve) => {
    timer = setTimeout(() => resolve(new Error(`no byte came within ${pieceWithinMs} ms`)), pieceWithinMs);
  });
  const piece = from.next().then(
    ({done, value}) => done ? new Error("the connection ended") : value,
    (err: unknown) => err instanceof Error ? err : new Error(String(err)));
  try {
    return await Promise.race([piece, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Why a part that is answered, as Content-Range says which, is not what was asked for, if it is not: of a part no hash tells. */
export function otherPart(range: string | undefined, bytes: number, first: number, end: number): Error | undefined {
  const part = `bytes ${first}-${end - 1}/${bytes}`;
  return range === part ? undefined : new Final(`${altered}: ${range || "no part"} came, want ${part}`);
}

/** Reads a reference, and throws a Final that says what is wrong with it. */
function referenceOf(value: unknown): Reference {
  const reference = readReference(value);
  if (typeof reference === "string") throw new Final(reference);
  return reference;
}

/** Reads a reference, or says what is wrong with it. */
function readReference(value: unknown): Reference | string {
  const object = value as {[mark]?: Partial<Reference>} | null | undefined;
  const inner = typeof object === "object" && object !== null && Object.keys(object).length === 1 ? object[mark] : undefined;
  if (typeof inner !== "object" || inner === null) return `want a reference to a payload, an object with the one member ${mark}`;
  const {sha256, bytes, type = "", by = ""} = inner;
  if (typeof sha256 !== "string" || !/^[0-9a-f]{64}$/.test(sha256)) {
    return `${mark}: sha256 is ${String(sha256).slice(0, 80)}: want 64 hex digits in lower case`;
  }
  if (typeof bytes !== "number" || !Number.isInteger(bytes) || bytes < 0 || bytes > maxLargePayloadBytes) {
    return `${mark}: bytes is ${String(bytes).slice(0, 80)}: want 0 to ${maxLargePayloadBytes}`;
  }
  return {sha256, bytes, type, by};
}

/** Says what is wrong with a media type, as whoever keeps payloads would, and before a byte is sent. Empty: nobody says what it is. */
function checkType(type: unknown): void {
  if (typeof type !== "string") throw new Final(`the type of a payload is a ${typeof type}: want a text, a media type such as application/pdf`);
  if (!/^[\x20-\x7e]*$/.test(type)) throw new Final(`the type of a payload is ${JSON.stringify(type.slice(0, maxTypeBytes))}: want printable ASCII, a media type such as application/pdf`);
  if (type.length > maxTypeBytes) throw new Final(`the type of a payload has ${type.length} bytes, the limit is ${maxTypeBytes}`);
  if (type !== "" && !/^[^ "(),/:;<=>?@[\\\]{}]+\/[^ "(),:;<=>?@[\\\]{}]+(;.*)?$/.test(type)) {
    throw new Final(`the type of a payload is ${JSON.stringify(type)}: want a media type such as application/pdf`);
  }
}

/** A payload that is no value, or none that is read into memory. */
class NoValue extends Final {}

/** Nothing at all is null, as it is for agents in Go. */
function parsed(text: string): JSONValue {
  try {
    return text === "" ? null : JSON.parse(text) as JSONValue;
  } catch (err) {
    throw new NoValue(`is no JSON: ${String(err)}`, {cause: err});
  }
}

/** Why a value could not be read, before anything was done. */
function unread(what: string, err: unknown): unknown {
  if (err instanceof Final) return new Final(`${what}: ${err.message}`, {notApplied: true, cause: err});
  return err instanceof Failure ? new NotApplied(`${what}: ${err.message}`, {cause: err}) : err;
}

/** What is written, in pieces; again begins at its beginning. */
interface Given {
  readonly again: () => AsyncIterable<Uint8Array> | Iterable<Uint8Array>;
  readonly length: number | undefined;
  readonly rereadable: boolean;
}

async function givenOf(source: PayloadSource): Promise<Given> {
  if (source instanceof Uint8Array) return limited(() => cut(source), source.length);
  if (typeof source === "object" && source !== null) {
    if ("file" in source) {
      const {size} = await stat(source.file);
      return limited(() => size === 0 ? [] : createReadStream(source.file, {end: size - 1, highWaterMark: pieceBytes}), size);
    }
    if (Symbol.asyncIterator in source || Symbol.iterator in source) return {again: () => source, length: undefined, rereadable: false};
  }
  throw new Final(`a payload is written from a Uint8Array, {file}, or an iterable of Uint8Array, and this is ${typeof source}`);
}

function limited(again: Given["again"], length: number): Given {
  if (length > maxLargePayloadBytes) throw new Final(`there are ${length} bytes, the limit of a payload is ${maxLargePayloadBytes}`);
  return {again, length, rereadable: true};
}

function* cut(bytes: Uint8Array): Generator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += pieceBytes) yield bytes.subarray(at, at + pieceBytes);
}

/** Pieces that are sent, counted and hashed. */
class Counted {
  readonly #given: Given;
  readonly #gone: AbortSignal;
  readonly #hash = createHash("sha256");
  #bytes = 0;
  begun = false;

  /** gone ends with whoever wants them. */
  constructor(given: Given, gone: AbortSignal) {
    this.#given = given;
    this.#gone = gone;
  }

  async *pieces(): AsyncGenerator<Uint8Array, void, void> {
    this.begun = true;
    const from = iteratorOf(this.#given.again());
    let ended = false;
    try {
      for (;;) {
        // A source that gives nothing more must not outlive the attempt.
        const {done, value: piece} = await unless(this.#gone, from.next());
        if (done) {
          ended = true;
          break;
        }
        this.#count(piece);
        if (piece.length > 0) yield piece;
      }
    } finally {
      // It is not waited for: it may be as stuck as the source.
      if (!ended) void (async () => from.return?.())().catch(() => {});
    }
    const {length} = this.#given;
    if (length !== undefined && this.#bytes !== length) throw new Failure(`the file has changed while it was written: it has ${this.#bytes} bytes, and had ${length}`);
  }

  #count(piece: Uint8Array): void {
    if (!((piece as unknown) instanceof Uint8Array)) throw new Final(`a payload is written from pieces that are a Uint8Array, and one is ${typeof piece}`);
    this.#hash.update(piece);
    this.#bytes += piece.length;
    if (this.#bytes > maxLargePayloadBytes) throw new Final(`there are more than ${maxLargePayloadBytes} bytes, the limit of a payload`);
  }

  /** Checks that a reference is of what was sent. */
  check(reference: Reference): void {
    if (reference.sha256 !== this.#hash.digest("hex") || reference.bytes !== this.#bytes) {
      throw new Final(`${altered}: ${this.#bytes} bytes were sent, and the reference is of ${reference.bytes}, or of others`);
    }
  }
}

function iteratorOf(source: AsyncIterable<Uint8Array> | Iterable<Uint8Array>): AsyncIterator<Uint8Array> {
  return Symbol.asyncIterator in source ? source[Symbol.asyncIterator]() : (async function* () { yield* source; })();
}

/** What is awaited, or a rejection with the reason of a signal, whichever comes first. */
export function unless<T>(signal: AbortSignal, awaited: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const stop = () => reject(signal.reason as Error);
    signal.addEventListener("abort", stop, {once: true});
    if (signal.aborted) stop();
    void Promise.resolve(awaited).then(resolve, reject).finally(() => signal.removeEventListener("abort", stop));
  });
}
