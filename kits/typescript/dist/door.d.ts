/** Where an agent gets its tasks, and says what became of them: over HTTP from an engine. makegood-agent/sqs is the other way. */
import type { Readable } from "node:stream";
import type { PayloadStore, Reference } from "./payload.js";
import type { JSONValue, Task } from "./task.js";
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
export type Message = {
    [name: string]: JSONValue | undefined;
};
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
/** The door of an engine: makegood dev --outside NAME, or engine.Options.Outside. */
export declare class HTTPDoor implements Door, PayloadStore {
    #private;
    readonly payloads: PayloadStore;
    constructor(url: string, options?: HTTPDoorOptions);
    take(agent: string, limit: number): Promise<Taken[]>;
    last(agent: string, limit: number): Promise<Taken[]>;
    heartbeat(taken: Taken, progress: JSONValue | undefined): Promise<Extended>;
    reply(taken: Taken, message: Message): Promise<void>;
    finish(_taken: Taken): Promise<void>;
    stop(): void;
    openPayload(taken: Taken, reference: Reference, first: number, end: number, signal: AbortSignal): Promise<Readable>;
    sendPayload(taken: Taken, type: string, pieces: AsyncIterable<Uint8Array>, length: number | undefined, signal: AbortSignal): Promise<JSONValue>;
}
