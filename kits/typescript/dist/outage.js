import { monotonic } from "./task.js";
// How many milliseconds are between two lines. What fails in between is tried again silently.
const everyMs = 60_000;
/** Says that nobody answers: in one line for a short outage, and in one a minute for a long one. */
export class Outage {
    #log;
    #said = -Infinity;
    constructor(log) {
        this.#log = log;
    }
    /** Is told of what failed and is tried again. */
    failed(what, why) {
        const now = monotonic();
        if (now - this.#said < everyMs)
            return;
        this.#said = now;
        this.#log(`no answer to ${what}, asked again: ${why}`);
    }
}
