/** Where an agent gets its tasks, and says what became of them: over HTTP from an engine. makegood-agent/sqs is the other way. */
import { randomUUID } from "node:crypto";
import * as http from "node:http";
import * as https from "node:https";
import { Ended, Failure, Final, NoAnswer, Refused } from "./errors.js";
import { altered, otherPart, unless } from "./payload.js";
import { encode, encodeASCII, identity, monotonic, readTask } from "./task.js";
const answerWithinMs = 30_000;
// How long an engine has to say whether it wants a body. Some proxies never say it.
const continueWithinMs = 1000;
/** The door of an engine: makegood dev --outside NAME, or engine.Options.Outside. */
export class HTTPDoor {
    payloads = this;
    #url;
    #shows;
    #instance;
    #wait;
    #log;
    #stop = new AbortController();
    #request;
    constructor(url, options = {}) {
        if (!/^https?:$/.test(new URL(url).protocol))
            throw new TypeError(`${url}: want the address of an engine, such as http://127.0.0.1:4777`);
        this.#url = url.replace(/\/+$/, "");
        this.#shows = options.token ? { Authorization: `Bearer ${options.token}` } : {};
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
        const said = await this.#post(`/api/agents/${taken.task.agent}/heartbeats`, { ...identity(taken.task), lockedBy: taken.lockedBy, progress }, Math.min(Math.max(1000, taken.task.timeoutMs / 4), answerWithinMs));
        return { status: said.status, leftMs: said.leftMs ?? 0 };
    }
    async reply(taken, message) {
        await this.#post(`/api/agents/${taken.task.agent}/replies`, message, answerWithinMs);
    }
    async finish(_taken) { }
    stop() {
        this.#stop.abort();
    }
    async openPayload(taken, reference, first, end, signal) {
        const asked = new URLSearchParams({ bytes: String(reference.bytes), ...(reference.by ? { by: reference.by } : {}) });
        const part = first > 0 || end < reference.bytes ? { Range: `bytes=${first}-${end - 1}` } : {};
        const request = this.#about("GET", `/${reference.sha256}?${asked}`, taken, part, signal);
        request.end();
        const response = await answered(request, answerWithinMs);
        if (response.statusCode !== 200 && response.statusCode !== 206)
            throw await refused(response);
        const wrong = otherThan(response, reference.bytes, first, end);
        if (wrong) {
            request.destroy();
            throw wrong;
        }
        return response;
    }
    async sendPayload(taken, type, pieces, length, signal) {
        const request = this.#about("PUT", "", taken, {
            "Content-Type": type || "application/octet-stream", ...(length === undefined ? {} : { "Content-Length": String(length) }),
            // What is refused is not sent: an answer that comes while it is being sent may be lost with the connection.
            ...(length === 0 ? {} : { Expect: "100-continue" }),
        }, signal);
        const answer = answered(request), over = new AbortController();
        answer.catch(() => { }).finally(() => over.abort());
        try {
            const body = sendBody(request, pieces, length === 0, over.signal);
            await body.catch((err) => {
                if (!over.signal.aborted)
                    throw err; // It was refused, or the line broke: the answer says which.
            });
            const response = await within(answer, answerWithinMs);
            if (response.statusCode !== 201)
                throw await refused(response);
            return referenceIn(await textOf(response));
        }
        finally {
            // What pieces threw ends the connection before the body has ended, and nothing is stored.
            request.destroy();
        }
    }
    /** Begins a request about payloads. It says for which attempt in a header: URLs are kept in logs. */
    #about(method, below, taken, headers, signal) {
        const url = new URL(`${this.#url}/api/agents/${taken.task.agent}/payloads${below}`);
        const holder = encodeASCII({ ...identity(taken.task), ...(taken.lockedBy ? { lockedBy: taken.lockedBy } : {}) });
        // Each on a connection of its own, which ends with it.
        return (url.protocol === "https:" ? https : http).request(url, {
            method, signal, agent: false, headers: { "Makegood-Holder": holder, "Accept-Encoding": "identity", ...this.#shows, ...headers },
        });
    }
    async #post(path, body, withinMs, stop) {
        const { status, answer } = await this.#exchange(path, encode(body), withinMs, stop);
        if (status === 200)
            return JSON.parse(answer);
        const { why } = problem(answer);
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
            const response = await fetch(this.#url + path, {
                method: "POST", headers: { "Content-Type": "application/json", ...this.#shows }, body, signal: end.signal,
            });
            return { status: response.status, answer: await response.text() };
        }
        finally {
            clearTimeout(timer);
            stop?.removeEventListener("abort", abort);
        }
    }
}
/** What is wrong, and whether the engine says that another attempt would be told the same. */
function problem(answer) {
    try {
        const said = JSON.parse(answer);
        if (said.error !== undefined)
            return { why: String(said.error), final: said.final === true };
    }
    catch {
        // It was no answer of ours.
    }
    return { why: answer.slice(0, 200), final: false };
}
function referenceIn(answer) {
    try {
        return JSON.parse(answer);
    }
    catch (err) {
        throw new NoAnswer(`the answer is no reference, but ${JSON.stringify(answer.slice(0, 200))}`, { cause: err });
    }
}
/** Why what is answered cannot be the bytes that were asked for, if it cannot. */
function otherThan({ statusCode, headers }, bytes, first, end) {
    const { "content-encoding": encoding = "identity", "content-length": length, "content-range": range } = headers;
    if (encoding !== "identity")
        return new Final(`${altered}: it comes encoded as ${encoding}, whatever is on the way`);
    const want = statusCode === 206 ? end - first : bytes;
    if (length !== undefined && Number(length) !== want)
        return new Final(`${altered}: ${length} bytes are there, want ${want}`);
    if (statusCode === 206)
        return otherPart(range, bytes, first, end);
    return first > 0 ? new NoAnswer("a part was asked for, and the answer has no part") : undefined;
}
/** The error that an answer about a payload stands for. What is final, and that the attempt is over, the engine says. */
async function refused(response) {
    const status = response.statusCode ?? 0, { why: text, final } = problem(await textOf(response)), why = `${status}: ${text}`;
    if (final)
        return new Final(why);
    if (status === 409)
        return new Ended(why);
    return status >= 500 || status === 429 ? new NoAnswer(why) : new Failure(why);
}
/** Sends the body of a request, if it is wanted. It rejects when the request is over before. */
async function sendBody(request, pieces, empty, over) {
    // What can be read only once is not begun where nobody listens.
    await unless(over, wanted(request, empty));
    const from = pieces[Symbol.asyncIterator]();
    for (let begun = monotonic();;) {
        const { done, value: piece } = await unless(over, from.next());
        if (done)
            break;
        if (!request.write(piece))
            await unless(over, new Promise((resolve) => request.once("drain", resolve)));
        // A line that takes all at once would let nothing else run: no timer of another attempt, and no answer either.
        if (monotonic() - begun > 5) {
            await new Promise((resolve) => setImmediate(resolve));
            begun = monotonic();
        }
    }
    request.end();
}
/** Resolves when the body of a request may begin: it is asked for, or nobody has said anything for so long. An empty one is not waited for. */
function wanted(request, empty) {
    return new Promise((resolve) => {
        let timer;
        request.once("continue", resolve).once("close", () => clearTimeout(timer));
        request.once("socket", (socket) => {
            socket.once("encrypted" in socket ? "secureConnect" : "connect", () => { timer = setTimeout(resolve, empty ? 0 : continueWithinMs); });
        });
        request.flushHeaders();
    });
}
/** The answer to a request. */
function answered(request, withinMs) {
    const answer = new Promise((resolve, reject) => {
        // It is listened to for as long as there is a request: an error that nobody hears ends the process.
        request.once("response", resolve).on("error", (err) => reject(new NoAnswer(err.message, { cause: err })));
    });
    return withinMs === undefined ? answer : within(answer, withinMs).catch((err) => {
        request.destroy();
        throw err;
    });
}
async function within(answer, ms) {
    let timer;
    const late = new Promise((_resolve, reject) => {
        timer = setTimeout(() => reject(new NoAnswer(`no answer within ${ms} ms`)), ms);
    });
    try {
        return await Promise.race([answer, late]);
    }
    finally {
        clearTimeout(timer);
    }
}
/** The text of an answer, as far as it came. */
async function textOf(response) {
    const read = [], late = setTimeout(() => response.destroy(), answerWithinMs);
    try {
        for await (const piece of response)
            read.push(piece);
    }
    catch {
        // It broke off; what it says so far may do.
    }
    finally {
        clearTimeout(late);
    }
    return Buffer.concat(read).toString();
}
