import type { Attempt } from "./attempt.js";
import type { JSONValue } from "./task.js";
/** What an action returns: a JSON value, or nothing. A type of your own will do, if it is JSON. */
export type Do<In> = (input: In, attempt: Attempt) => unknown;
/** done is the step's output; null when its outcome is unknown: it may or may not have happened. */
export type UndoDo<In, Out> = (input: In, done: Out | null, attempt: Attempt) => unknown;
/** Makes of the input, as JSON gives it, what the function takes. What it throws is final, and had no effect. */
export type Parse<In> = (input: JSONValue) => In;
export interface ActionOptions {
    /**
     * The action takes references: an input that is a large payload as a whole, and the output that an undo is told, are given as they
     * are, for attempt.openPayload. Else they are read into memory, up to 16 MB of JSON. An input that is anything else, or more, is a
     * Final; an undo is told the reference to such an output.
     */
    references?: boolean;
}
/** An agent: a name, and what it can be asked for. The names are those of the workflow file. */
export declare class Agent {
    #private;
    readonly name: string;
    constructor(agent: string);
    /** Declares an action. An undo may name it too: attempt.task.undo tells it what it undoes. An output above 256 KB becomes a payload by itself. */
    do<In = JSONValue>(action: string, handle: Do<In>, parse?: Parse<In>, options?: ActionOptions): this;
    /**
     * Declares an action that compensates. When the outcome of the step is unknown it sees to it that it has not happened and
     * will not, under attempt.task.undo.forwardKey. That there is nothing to undo is success. The step's output that is a large payload is
     * read for it, as an input is; what is no JSON, or more than 16 MB, it is told by its reference, for attempt.openPayload: what was
     * done must be undone, whatever it gave.
     */
    undo<In = JSONValue, Out = JSONValue>(action: string, handle: UndoDo<In, Out>, parse?: Parse<In>, options?: ActionOptions): this;
    /** All that it can be asked for, sorted. */
    actions(): string[];
    /** Does one attempt, and gives its output. What it throws says how it failed. */
    handle(attempt: Attempt): Promise<unknown>;
}
