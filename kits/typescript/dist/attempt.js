import { setMaxListeners } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { Final, HeartbeatError, Over, Refused, Withdrawn, reason } from "./errors.js";
import { Payloads } from "./payload.js";
import { encode, monotonic } from "./task.js";
const maxMarginMs = 1000;
const maxRestMs = 10_000;
const maxProgressBytes = 512;
// How long between two tries of a heartbeat that was not answered; it doubles from one to the other.
const minPauseMs = 100, maxPauseMs = 2000;
// The longest delay of a timer.
const longestTimerMs = 2 ** 31 - 1;
/** What an action is told of the attempt that it is, and how it says that it goes on. */
export class Attempt {
    /** The task; its input has its secrets in it. */
    task;
    /** Nobody but the kit needs it. */
    payloads;
    #taken;
    #door;
    #outage;
    #marginMs;
    #abort = new AbortController();
    #lapses;
    #heartbeats = Promise.resolve();
    #expires;
    #extended;
    #replaced = false;
    #timer;
    constructor(taken, door, outage) {
        this.task = taken.task;
        this.#taken = taken;
        this.#door = door;
        this.#outage = outage;
        this.#marginMs = Math.min(maxMarginMs, taken.task.timeoutMs / 10);
        this.#expires = taken.expires;
        this.#extended = taken.began;
        this.#lapses = taken.task.totalMs === undefined ? Infinity : taken.began + taken.task.totalMs;
        // As many may wait for it as the action does at once: that is no leak, of which Node would warn from the eleventh on.
        setMaxListeners(0, this.signal);
        this.payloads = new Payloads(this, taken, door.payloads);
        this.#expire();
    }
    /** Ends when the work must stop: it has run out of time, or nobody wants its result. Its reason is a Withdrawn or an Over. Hand it to fetch. */
    get signal() {
        return this.#abort.signal;
    }
    /** Who holds the attempt, as its claim says; empty where nobody claims it. A write of your own may rest on it (docs/fence.md). */
    get lockedBy() {
        return this.#taken.lockedBy;
    }
    /** The DynamoDB table that has the claim; empty where no table has it. */
    get table() {
        return this.#taken.table ?? "";
    }
    /** How many milliseconds are left for work, as it stands now; never less than 0. The margin for the reply is taken off. */
    leftMs() {
        return this.signal.aborted ? 0 : Math.max(0, this.#expires - this.#marginMs - monotonic());
    }
    /** Throws a Withdrawn or an Over if the work must stop. */
    check() {
        if (!this.signal.aborted && this.leftMs() <= 0)
            this.#end(new Over("out of time"));
        this.signal.throwIfAborted();
    }
    /** Waits, but no longer than there is time for work; then it throws what check throws. */
    async wait(ms) {
        this.check();
        await new Promise((resolve, reject) => {
            const stopped = () => { clearTimeout(timer); reject(this.signal.reason); };
            const timer = setTimeout(() => { this.signal.removeEventListener("abort", stopped); resolve(); }, Math.min(ms, longestTimerMs));
            this.signal.addEventListener("abort", stopped, { once: true });
        });
    }
    /**
     * Says that the work goes on: its time is counted anew from now. progress, at most 512 bytes of JSON, is shown to people.
     *
     * Work that may take longer than the step's timeout calls it at least twice in that time. Where the workflow says
     * heartbeat, it may be called in a loop: most calls are not sent then. It rejects with a Withdrawn: nobody wants the result
     * any more, there is still time to stop tidily, and a reply is heeded. With an Over: the attempt has ended, nothing is. With
     * a HeartbeatError: it can never be taken, as where the step is not exclusive.
     *
     * While nobody answers, such as an engine that is started again, it is said again until it is taken or the time is up: work that
     * goes on after it is the attempt's still. Work that must not stand still meanwhile uses keepAlive.
     */
    heartbeat(progress) {
        if (this.task.shared)
            return Promise.reject(unclaimed());
        const bytes = progress === undefined ? 0 : Buffer.byteLength(encode(progress));
        if (bytes > maxProgressBytes)
            return Promise.reject(new Final(`progress: ${bytes} bytes as JSON, the limit is ${maxProgressBytes}`));
        return this.#beat(progress, new AbortController().signal);
    }
    /**
     * Does work that cannot call heartbeat, such as one call that takes 40 minutes: heartbeats in the background, three times in the time
     * that the attempt may be silent, until work has settled, and gives what it gives.
     *
     * It keeps alive also what hangs, so give the call a time limit of its own, and attempt.signal: that ends when nobody wants the
     * result any more. Work that keeps the thread of Node busy lets no heartbeat out: do that in a Worker. It rejects with a
     * HeartbeatError where the step is not exclusive.
     */
    async keepAlive(work) {
        if (this.task.shared)
            throw unclaimed();
        const done = new AbortController();
        void this.#keepAlive(done.signal);
        try {
            return await work();
        }
        finally {
            done.abort();
        }
    }
    async #keepAlive(done) {
        try {
            for (;;) {
                await sleep(Math.min(this.task.timeoutMs / 3, longestTimerMs), undefined, { signal: done });
                await this.#beat(undefined, done);
            }
        }
        catch {
            // The work has settled, or the attempt has ended, which its signal says.
        }
    }
    #beat(progress, done) {
        // One at a time, so that what is stored last is what is kept last.
        const mine = this.#heartbeats.then(() => this.#extend(progress, done));
        this.#heartbeats = mine.catch(() => { });
        return mine;
    }
    /** Says a heartbeat until it is taken, the time is up, or nobody needs it any more. */
    async #extend(progress, done) {
        for (let pauseMs = minPauseMs; !done.aborted; pauseMs = Math.min(2 * pauseMs, maxPauseMs)) {
            this.check();
            const asked = monotonic();
            if (this.#lapses !== Infinity && progress === undefined && asked - this.#extended < Math.min(maxRestMs, this.task.timeoutMs / 4))
                return;
            try {
                this.#answered(asked, await this.#door.heartbeat(this.#taken, progress));
                break;
            }
            catch (err) {
                this.check();
                if (err instanceof Refused)
                    throw new HeartbeatError(err.message, { cause: err });
                this.#outage.failed(`a heartbeat of ${this.task.job}/${this.task.step}`, reason(err));
                await this.wait(pauseMs * (0.5 + Math.random() / 2));
            }
        }
        this.check();
    }
    #answered(asked, { status, leftMs }) {
        if (status === "over") {
            this.over();
            return;
        }
        this.#expires = Math.min(asked + leftMs, this.#lapses);
        this.#extended = asked;
        if (status === "withdrawn")
            this.#end(new Withdrawn("nobody wants the result any more"));
    }
    /**
     * Writes what is too large for an output, at most 100 MB: a Uint8Array, {file: path}, or an iterable of Uint8Array, such as a
     * stream. It gives the reference, which the output can hold, anywhere; then the bytes are durable. type says what they are, such as
     * "application/pdf".
     *
     * Only pieces are held in memory. A Uint8Array and a file are sent again where the line breaks; anything else can be sent only
     * once. It does not move the attempt's time: what takes long calls heartbeat meanwhile. Final: too much, no right to, or a type that is
     * none: at most 100 bytes of printable ASCII, a media type. A source that gives nothing more is left when the work must stop.
     */
    writePayload(source, type = "") {
        return this.payloads.write(source, type);
    }
    /**
     * Opens what a reference in the input refers to, as a stream of Buffers; a part of it with offset and length. Read it to its end, or
     * destroy it. A download that breaks is read on.
     *
     * Whoever has read all has read what was written: the last piece is given only if the hash of all is right. Of a part no hash
     * tells. It rejects, and the stream fails, with a Final: it is not there, or is not what was written.
     */
    openPayload(reference, part = {}) {
        return this.payloads.open(reference, part.offset ?? 0, part.length);
    }
    /** Is called when the engine has said that the attempt has ended: nothing is said of it any more. */
    over() {
        this.#replaced = true;
        this.#end(new Over("another attempt has begun, or nobody wants this one"));
    }
    /** Tells the action to stop; the runner does so when the process ends. */
    stop(why) {
        this.#end(why);
    }
    /** Is called when nothing of the attempt runs any more. */
    close() {
        clearTimeout(this.#timer);
        this.payloads.close();
    }
    /** Whether nothing may be said any more, not even an error: somebody else may have begun. */
    silent() {
        return this.#replaced || monotonic() >= this.#expires;
    }
    /** How long the attempt may still say something, in milliseconds. */
    lastWordMs() {
        return this.#replaced ? 0 : Math.max(0, this.#expires - monotonic());
    }
    #end(why) {
        this.#abort.abort(why);
        clearTimeout(this.#timer);
    }
    /** Ends the work when its time is up, unless that has moved since the timer was set. */
    #expire() {
        const left = this.#expires - this.#marginMs - monotonic();
        if (left <= 0) {
            this.#end(new Over("out of time"));
            return;
        }
        this.#timer = setTimeout(() => this.#expire(), Math.min(Math.ceil(left), longestTimerMs));
    }
}
function unclaimed() {
    return new HeartbeatError("the step is not exclusive, so nobody claims its attempts, and their time cannot move");
}
