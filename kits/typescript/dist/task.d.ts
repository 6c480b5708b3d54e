/** Tasks, as they come on the wire (docs/messages.md). */
/** What JSON can say. */
export type JSONValue = null | boolean | number | string | JSONValue[] | {
    [name: string]: JSONValue;
};
export declare const maxPayloadBytes: number;
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
export declare class Newer extends Error {
    name: string;
}
/** Reads a task, and ignores the fields that it does not know. Newer; any other error for what can never be understood. */
export declare function readTask(message: JSONValue): Task;
/** Reads RFC 3339 as Unix milliseconds. */
export declare function readTime(time: string): number;
/** What every message about a task must say. */
export declare function identity(task: Task): {
    job: string;
    step: string;
    attempt: number;
    token: string;
};
/**
 * Writes JSON as it is sent: UTF-8 carries what is no ASCII as it is, for a limit counts what is sent, and six bytes of each such
 * character would be over one that it keeps. A queue refuses two characters raw.
 */
export declare function encode(message: unknown): string;
/** Writes JSON for a header, which carries ASCII alone. */
export declare function encodeASCII(message: unknown): string;
/** Shortens a text to what is kept of an error, at a character's edge. */
export declare function clip(text: string, end?: string): string;
/** A number of milliseconds that never goes back, whatever is done to the clock. */
export declare function monotonic(): number;
