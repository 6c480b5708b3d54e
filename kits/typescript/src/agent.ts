import {Final} from "./errors.js";
import type {Attempt} from "./attempt.js";
import type {JSONValue} from "./task.js";

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

interface Route {
  undoes: boolean;
  handle: (attempt: Attempt) => unknown;
}

const name = /^[A-Za-z][A-Za-z0-9_-]{0,62}$/;

/** An agent: a name, and what it can be asked for. The names are those of the workflow file. */
export class Agent {
  readonly name: string;
  readonly #routes = new Map<string, Route>();

  constructor(agent: string) {
    if (!name.test(agent)) throw new TypeError(`${JSON.stringify(agent)} cannot be an agent's name: want ${name.source}`);
    this.name = agent;
  }

  /** Declares an action. An undo may name it too: attempt.task.undo tells it what it undoes. An output above 256 KB becomes a payload by itself. */
  do<In = JSONValue>(action: string, handle: Do<In>, parse?: Parse<In>, options?: ActionOptions): this {
    return this.#add(action, {undoes: false, handle: async (attempt) => handle(await read(attempt, parse, options), attempt)});
  }

  /**
   * Declares an action that compensates. When the outcome of the step is unknown it sees to it that it has not happened and
   * will not, under attempt.task.undo.forwardKey. That there is nothing to undo is success. The step's output that is a large payload is
   * read for it, as an input is; what is no JSON, or more than 16 MB, it is told by its reference, for attempt.openPayload: what was
   * done must be undone, whatever it gave.
   */
  undo<In = JSONValue, Out = JSONValue>(action: string, handle: UndoDo<In, Out>, parse?: Parse<In>, options?: ActionOptions): this {
    return this.#add(action, {undoes: true, handle: async (attempt) => {
      const undo = attempt.task.undo, done = undo?.outcome === "done" ? undo.output : null;
      const told = options?.references ? done : await attempt.payloads.told("the step's output", done);
      await handle(await read(attempt, parse, options), told as Out | null, attempt);
      return null;
    }});
  }

  /** All that it can be asked for, sorted. */
  actions(): string[] {
    return [...this.#routes.keys()].sort();
  }

  #add(action: string, route: Route): this {
    if (!name.test(action)) throw new TypeError(`agent ${this.name}: ${JSON.stringify(action)} cannot be the name of an action`);
    if (this.#routes.has(action)) throw new TypeError(`agent ${this.name}: action ${action} is there twice`);
    this.#routes.set(action, route);
    return this;
  }

  /** Does one attempt, and gives its output. What it throws says how it failed. */
  async handle(attempt: Attempt): Promise<unknown> {
    const {action, undo} = attempt.task;
    const route = this.#routes.get(action);
    if (!route) throw new Final(`agent ${this.name} has no action "${action}", only ${this.actions().join(", ")}`, {notApplied: true});
    if (route.undoes && !undo) throw new Final(`action "${action}" of agent ${this.name} undoes; it cannot be a step of its own`, {notApplied: true});
    return route.handle(attempt);
  }
}

async function read<In>(attempt: Attempt, parse: Parse<In> | undefined, options: ActionOptions | undefined): Promise<In> {
  const input = options?.references ? attempt.task.input : await attempt.payloads.value("input", attempt.task.input);
  if (!parse) return input as In;
  try {
    return parse(input);
  } catch (err) {
    throw new Final(`input: ${err instanceof Error ? err.message : String(err)}`, {notApplied: true, cause: err});
  }
}
