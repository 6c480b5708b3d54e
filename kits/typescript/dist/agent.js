import { Final } from "./errors.js";
const name = /^[A-Za-z][A-Za-z0-9_-]{0,62}$/;
/** An agent: a name, and what it can be asked for. The names are those of the workflow file. */
export class Agent {
    name;
    #routes = new Map();
    constructor(agent) {
        if (!name.test(agent))
            throw new TypeError(`${JSON.stringify(agent)} cannot be an agent's name: want ${name.source}`);
        this.name = agent;
    }
    /** Declares an action. An undo may name it too: attempt.task.undo tells it what it undoes. An output above 256 KB becomes a payload by itself. */
    do(action, handle, parse, options) {
        return this.#add(action, { undoes: false, handle: async (attempt) => handle(await read(attempt, parse, options), attempt) });
    }
    /**
     * Declares an action that compensates. When the outcome of the step is unknown it sees to it that it has not happened and
     * will not, under attempt.task.undo.forwardKey. That there is nothing to undo is success. The step's output that is a large payload is
     * read for it, as an input is; what is no JSON, or more than 16 MB, it is told by its reference, for attempt.openPayload: what was
     * done must be undone, whatever it gave.
     */
    undo(action, handle, parse, options) {
        return this.#add(action, { undoes: true, handle: async (attempt) => {
                const undo = attempt.task.undo, done = undo?.outcome === "done" ? undo.output : null;
                const told = options?.references ? done : await attempt.payloads.told("the step's output", done);
                await handle(await read(attempt, parse, options), told, attempt);
                return null;
            } });
    }
    /** All that it can be asked for, sorted. */
    actions() {
        return [...this.#routes.keys()].sort();
    }
    #add(action, route) {
        if (!name.test(action))
            throw new TypeError(`agent ${this.name}: ${JSON.stringify(action)} cannot be the name of an action`);
        if (this.#routes.has(action))
            throw new TypeError(`agent ${this.name}: action ${action} is there twice`);
        this.#routes.set(action, route);
        return this;
    }
    /** Does one attempt, and gives its output. What it throws says how it failed. */
    async handle(attempt) {
        const { action, undo } = attempt.task;
        const route = this.#routes.get(action);
        if (!route)
            throw new Final(`agent ${this.name} has no action "${action}", only ${this.actions().join(", ")}`, { notApplied: true });
        if (route.undoes && !undo)
            throw new Final(`action "${action}" of agent ${this.name} undoes; it cannot be a step of its own`, { notApplied: true });
        return route.handle(attempt);
    }
}
async function read(attempt, parse, options) {
    const input = options?.references ? attempt.task.input : await attempt.payloads.value("input", attempt.task.input);
    if (!parse)
        return input;
    try {
        return parse(input);
    }
    catch (err) {
        throw new Final(`input: ${err instanceof Error ? err.message : String(err)}`, { notApplied: true, cause: err });
    }
}
