/** Where an agent gets its tasks, and says what became of them: over HTTP from an engine. makegood-agent/sqs is the other way. */
import { randomUUID } from "node:crypto";
import { Refused } from "./errors.js";
import { encode, identity, monotonic, readTask } from "./task.js";
const answerWithinMs = 30_000;
/** The door of an engine: makegood dev --outside NAME, or engine.Options.Outside. */
export class HTTPDoor {
    #url;
    #headers;
    #instance;
    #wait;
    #log;
    #stop = new AbortController();
    #request;
    constructor(url, options = {}) {
        if (!/^https?:$/.test(new URL(url).protocol))
            throw new TypeError(`${url}: want the address of an engine, such as http://127.0.0.1:4777`);
        this.#url = url.replace(/\/+$/, "");
        this.#headers = { "Content-Type": "application/json", ...(options.token ? { Authorization: `Bearer ${options.token}` } : {}) };
        this.#instance = options.instance ?? "ts-" + randomUUID().slice(0, 12);
        this.#wait = options.wait ?? 20;
        this.#log = options.log ?? ((line) => console.error(`makegood-agent: ${line}`));
    }
    async take(agent, limit) {
        // The same request again is given the same tasks: what it was given when the connection broke is not lost.
        this.#request ??= randomUUID();
        return this.#take(agent, limit, this.#wait, this.#stop.signal);
    }
    async last(agent, limit) {
        return this.#request === undefined ? [] : this.#take(agent, limit, 0);
    }
    async #take(agent, limit, wait, stop) {
        const asked = monotonic();
        const given = await this.#post(`/api/agents/${agent}/tasks`, { instance: this.#instance, max: Math.min(limit, 10), wait, request: this.#request }, wait * 1000 + answerWithinMs, stop);
        this.#request = undefined;
        // Our clock and the engine's are not compared: its answer left it no earlier than that.
        const answered = asked + given.heldMs;
        return given.tasks.flatMap((one) => {
            try {
                const task = readTask(one.task), expires = answered + one.leftMs;
                return [{ task, lockedBy: one.lockedBy ?? "", startedAt: one.startedAt, began: expires - task.timeoutMs, expires }];
            }
            catch (err) {
                // It ends in silence; those beside it are none the worse.
                this.#log(`a task cannot be read: ${String(err)}`);
                return [];
            }
        });
    }
    async heartbeat(taken, progress) {
        const said = await this.#post(`/api/agents/${taken.task.agent}/heartbeats`, { ...identity(taken.task), lockedBy: taken.lockedBy, progress }, Math.min(taken.task.timeoutMs, answerWithinMs));
        return { status: said.status, leftMs: said.leftMs ?? 0 };
    }
    async reply(taken, message) {
        await this.#post(`/api/agents/${taken.task.agent}/replies`, message, answerWithinMs);
    }
    async finish(_taken) { }
    stop() {
        this.#stop.abort();
    }
    async #post(path, body, withinMs, stop) {
        const { status, answer } = await this.#exchange(path, encode(body), withinMs, stop);
        if (status === 200)
            return JSON.parse(answer);
        let why = answer.slice(0, 200);
        try {
            why = String(JSON.parse(answer).error ?? why);
        }
        catch {
            // It was no answer of ours.
        }
        if (status === 400 || status === 413)
            throw new Refused(`${status}: ${why}`);
        throw new Error(`${status}: ${why}`);
    }
    async #exchange(path, body, withinMs, stop) {
        const end = new AbortController(), abort = () => end.abort(stop?.reason ?? new Error(`no answer within ${withinMs} ms`));
        const timer = setTimeout(abort, withinMs);
        stop?.addEventListener("abort", abort);
        if (stop?.aborted)
            abort();
        try {
            const response = await fetch(this.#url + path, { method: "POST", headers: this.#headers, body, signal: end.signal });
            return { status: response.status, answer: await response.text() };
        }
        finally {
            clearTimeout(timer);
            stop?.removeEventListener("abort", abort);
        }
    }
}
