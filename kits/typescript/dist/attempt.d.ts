import { Payloads } from "./payload.js";
import type { Readable } from "node:stream";
import type { Door, Taken } from "./door.js";
import type { Outage } from "./outage.js";
import type { PayloadReference, PayloadSource } from "./payload.js";
import type { JSONValue, Task } from "./task.js";
/** What an action is told of the attempt that it is, and how it says that it goes on. */
export declare class Attempt {
    #private;
    /** The task; its input has its secrets in it. */
    task: Task;
    /** Nobody but the kit needs it. */
    readonly payloads: Payloads;
    constructor(taken: Taken, door: Door, outage: Outage);
    /** Ends when the work must stop: it has run out of time, or nobody wants its result. Its reason is a Withdrawn or an Over. Hand it to fetch. */
    get signal(): AbortSignal;
    /** Who holds the attempt, as its claim says; empty where nobody claims it. A write of your own may rest on it (docs/fence.md). */
    get lockedBy(): string;
    /** The DynamoDB table that has the claim; empty where no table has it. */
    get table(): string;
    /** How many milliseconds are left for work, as it stands now; never less than 0. The margin for the reply is taken off. */
    leftMs(): number;
    /** Throws a Withdrawn or an Over if the work must stop. */
    check(): void;
    /** Waits, but no longer than there is time for work; then it throws what check throws. */
    wait(ms: number): Promise<void>;
    /**
     * Says that the work goes on: its time is counted anew from now. progress, at most 512 bytes of JSON, is shown to people.
     *
     * Work that may take longer than the step's timeout calls it at least twice in that time. Where the workflow says
     * heartbeat, it may be called in a loop: most calls are not sent then. It rejects with a Withdrawn: nobody wants the result
     * any more, there is still time to stop tidily, and a reply is heeded. With an Over: the attempt has ended, nothing is. With
     * a HeartbeatError: it can never be taken, as where the step is not exclusive.
     *
     * While nobody answers, such as an engine that is started again, it is said again until it is taken or the time is up: work that
     * goes on after it is the attempt's still. Work that must not stand still meanwhile uses keepAlive.
     */
    heartbeat(progress?: JSONValue): Promise<void>;
    /**
     * Does work that cannot call heartbeat, such as one call that takes 40 minutes: heartbeats in the background, three times in the time
     * that the attempt may be silent, until work has settled, and gives what it gives.
     *
     * It keeps alive also what hangs, so give the call a time limit of its own, and attempt.signal: that ends when nobody wants the
     * result any more. Work that keeps the thread of Node busy lets no heartbeat out: do that in a Worker. It rejects with a
     * HeartbeatError where the step is not exclusive.
     */
    keepAlive<T>(work: () => T | PromiseLike<T>): Promise<T>;
    /**
     * Writes what is too large for an output, at most 100 MB: a Uint8Array, {file: path}, or an iterable of Uint8Array, such as a
     * stream. It gives the reference, which the output can hold, anywhere; then the bytes are durable. type says what they are, such as
     * "application/pdf".
     *
     * Only pieces are held in memory. A Uint8Array and a file are sent again where the line breaks; anything else can be sent only
     * once. It does not move the attempt's time: what takes long calls heartbeat meanwhile. Final: too much, no right to, or a type that is
     * none: at most 100 bytes of printable ASCII, a media type. A source that gives nothing more is left when the work must stop.
     */
    writePayload(source: PayloadSource, type?: string): Promise<PayloadReference>;
    /**
     * Opens what a reference in the input refers to, as a stream of Buffers; a part of it with offset and length. Read it to its end, or
     * destroy it. A download that breaks is read on.
     *
     * Whoever has read all has read what was written: the last piece is given only if the hash of all is right. Of a part no hash
     * tells. It rejects, and the stream fails, with a Final: it is not there, or is not what was written.
     */
    openPayload(reference: unknown, part?: {
        offset?: number;
        length?: number;
    }): Promise<Readable>;
    /** Is called when the engine has said that the attempt has ended: nothing is said of it any more. */
    over(): void;
    /** Tells the action to stop; the runner does so when the process ends. */
    stop(why: Error): void;
    /** Is called when nothing of the attempt runs any more. */
    close(): void;
    /** Whether nothing may be said any more, not even an error: somebody else may have begun. */
    silent(): boolean;
    /** How long the attempt may still say something, in milliseconds. */
    lastWordMs(): number;
}
