/** What is known of a failure. */
export interface FailureOptions {
    /** Another attempt would fail too: the step is given up. */
    final?: boolean;
    /** The attempt surely had no effect, so that there is nothing to undo after it. When in doubt do not say it. */
    notApplied?: boolean;
    /** The remote asked to be left alone for so many milliseconds; kept to up to the step's retry.max. */
    retryAfterMs?: number;
    /** What kind of error it is, such as "card_declined", for onError of the workflow. What is no such name is no kind. */
    kind?: string;
    cause?: unknown;
}
/**
 * A failure, and what is known of it. Any other error is retryable, and leaves it unknown whether there was an effect. One that JavaScript
 * throws for a mistake in the program (TypeError, ReferenceError, RangeError) is of the kind panic, too, for which a job stops instead of being undone.
 */
export declare class Failure extends Error {
    readonly final: boolean;
    readonly notApplied: boolean;
    readonly retryAfterMs: number | undefined;
    readonly kind: string;
    constructor(message: string, options?: FailureOptions);
}
/** Another attempt would fail too. */
export declare class Final extends Failure {
    constructor(message: string, options?: Omit<FailureOptions, "final">);
}
/** The attempt surely had no effect; another may succeed. */
export declare class NotApplied extends Failure {
    constructor(message: string, options?: Omit<FailureOptions, "notApplied">);
}
/** The remote asked to be left alone for so many milliseconds. */
export declare class RetryAfter extends Failure {
    constructor(message: string, milliseconds: number, options?: Omit<FailureOptions, "retryAfterMs">);
}
/**
 * Thrown by an action whose step somebody or something else will complete: a person, a bank, a webhook. The step waits,
 * without a claim and without compute, until whoever was given attempt.task.completion completes it, or until the deadline.
 * Hand the token over before throwing this.
 */
export declare class Wait extends Error {
    readonly deadline: Date;
    constructor(deadline: Date);
}
/** Nobody wants the result any more, because the job is to be undone. What is replied until CompleteBy is still heeded. */
export declare class Withdrawn extends Error {
    name: string;
}
/** The attempt has run out of time, or was replaced. Another may have begun, and nothing that this one says is heeded. */
export declare class Over extends Error {
    name: string;
}
/** A heartbeat can never be taken: the step is not exclusive, or the engine refuses it. The deadline stays where it was. */
export declare class HeartbeatError extends Error {
    name: string;
}
/** What was said can never be taken. */
export declare class Refused extends Error {
    name: string;
}
/** The engine cannot say now what became of what was asked: ask again. */
export declare class NoAnswer extends Error {
    name: string;
}
/** Who keeps the claim says that the attempt has ended. That its time is up is another thing: of that a failure may still be said. */
export declare class Ended extends Over {
    name: string;
}
/** What an error says, and why. */
export declare function reason(err: unknown): string;
