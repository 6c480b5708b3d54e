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
export class Failure extends Error {
  readonly final: boolean;
  readonly notApplied: boolean;
  readonly retryAfterMs: number | undefined;
  readonly kind: string;

  constructor(message: string, options: FailureOptions = {}) {
    super(message, {cause: options.cause});
    this.name = new.target.name;
    this.final = options.final ?? false;
    this.notApplied = options.notApplied ?? false;
    this.retryAfterMs = options.retryAfterMs;
    this.kind = /^[a-z][a-z0-9_]{0,62}$/.test(options.kind ?? "") ? options.kind! : "";
  }
}

/** Another attempt would fail too. */
export class Final extends Failure {
  constructor(message: string, options: Omit<FailureOptions, "final"> = {}) {
    super(message, {...options, final: true});
  }
}

/** The attempt surely had no effect; another may succeed. */
export class NotApplied extends Failure {
  constructor(message: string, options: Omit<FailureOptions, "notApplied"> = {}) {
    super(message, {...options, notApplied: true});
  }
}

/** The remote asked to be left alone for so many milliseconds. */
export class RetryAfter extends Failure {
  constructor(message: string, milliseconds: number, options: Omit<FailureOptions, "retryAfterMs"> = {}) {
    super(message, {...options, retryAfterMs: milliseconds});
  }
}

/** The remote asked for so many milliseconds without any attempt of this agent. This one is not counted. */
export class SlowDown extends RetryAfter {}

/**
 * Thrown by an action whose step somebody or something else will complete: a person, a bank, a webhook. The step waits,
 * without a claim and without compute, until whoever was given attempt.task.completion completes it, or until the deadline.
 * Hand the token over before throwing this.
 */
export class Wait extends Error {
  readonly deadline: Date;

  constructor(deadline: Date) {
    if (Number.isNaN(deadline.getTime())) throw new RangeError("Wait: the deadline is no time");
    super(`the step waits until ${deadline.toISOString()}`);
    this.name = "Wait";
    this.deadline = deadline;
  }
}

/** Nobody wants the result any more, because the job is to be undone. What is replied until CompleteBy is still heeded. */
export class Withdrawn extends Error {
  override name = "Withdrawn";
}

/** The attempt has run out of time, or was replaced. Another may have begun, and nothing that this one says is heeded. */
export class Over extends Error {
  override name = "Over";
}

/** A heartbeat can never be taken: the step is not exclusive, or the engine refuses it. The deadline stays where it was. */
export class HeartbeatError extends Error {
  override name = "HeartbeatError";
}

/** What was said can never be taken. */
export class Refused extends Error {
  override name = "Refused";
}

/** The engine cannot say now what became of what was asked: ask again. */
export class NoAnswer extends Error {
  override name = "NoAnswer";
}

/** Who keeps the claim says that the attempt has ended. That its time is up is another thing: of that a failure may still be said. */
export class Ended extends Over {
  override name = "Over";
}

/** What an error says, and why. */
export function reason(err: unknown): string {
  if (!(err instanceof Error)) return String(err);
  const cause = err.cause instanceof Error ? `: ${err.cause.message}` : "";
  return `${err.name}: ${err.message}${cause}`;
}
