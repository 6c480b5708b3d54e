/** Tasks, as they come on the wire (docs/messages.md). */
export const maxPayloadBytes = 256 * 1024;
const maxReasonBytes = 1024;
/** A message that a newer release wrote. It is neither done nor poison. */
export class Newer extends Error {
    name = "Newer";
}
// The types of message that this kit knows, and what the engine tells itself: no release sends those.
const known = new Set([
    "Task", "SecretTask", "Submit", "Submitted", "StepSucceeded", "StepFailed", "StepWaiting", "StepCompleted",
    "WaitExtended", "DeadlinePassed", "Announcement", "AgentSilent", "Quarantined",
]);
const inner = new Set(["AttemptClosed", "DispatchRefused", "Interrupted", "NotHeard", "Requested", "Told"]);
/** Reads a task, and ignores the fields that it does not know. Newer; any other error for what can never be understood. */
export function readTask(message) {
    const m = object(message);
    const { v: version, type } = m;
    if (typeof version !== "number" || !Number.isInteger(version) || version < 1 || version > 9999 ||
        typeof type !== "string" || !/^[A-Z][A-Za-z]{0,62}$/.test(type)) {
        throw new Error("want a version and a type");
    }
    if (!inner.has(type) && (version > 1 || !known.has(type)))
        throw new Newer(`version ${version}, type ${type}`);
    if (type !== "Task" && type !== "SecretTask")
        throw new Error(`want a task, got ${type}`);
    const undo = m["undo"] == null ? undefined : object(m["undo"]);
    const timeoutMs = number(m, "timeoutMs");
    if (timeoutMs <= 0)
        throw new Error(`timeoutMs ${timeoutMs}`);
    if (typeof m["exclusive"] !== "boolean")
        throw new Error("exclusive: want true or false");
    return {
        job: text(m, "job"), workflow: String(m["workflow"] ?? ""), step: text(m, "step"), round: number(m, "round"),
        attempt: number(m, "attempt"), agent: text(m, "agent"), action: text(m, "action"), input: m["input"] ?? null,
        key: text(m, "key"), timeoutMs, shared: !m["exclusive"], completion: String(m["completion"] ?? ""),
        traceparent: String(m["traceparent"] ?? ""), token: text(m, "token"),
        replyTo: text(m, "replyTo"), birth: text(m, "birth"), claimUntil: readTime(text(m, "claimUntil")),
        secrets: Array.isArray(m["secrets"]) ? m["secrets"].map(readSecret) : [],
        ...(m["totalMs"] ? { totalMs: number(m, "totalMs") } : {}),
        ...(m["completeBy"] ? { completeBy: readTime(text(m, "completeBy")) } : {}),
        ...(undo ? { undo: {
                forwardKey: text(undo, "forwardKey"), outcome: undo["outcome"] === "done" ? "done" : "unknown",
                output: undo["output"] ?? null, keys: keysOf(undo),
            } } : {}),
    };
}
function keysOf(undo) {
    const first = text(undo, "forwardKey");
    const keys = [first];
    for (let n = 2; n <= Number(undo["repeats"] ?? 0) + 1; n++)
        keys.unshift(`${first}/${n}`);
    return keys;
}
function readSecret(value) {
    const m = object(value);
    return { path: String(m["path"] ?? ""), at: m["at"] === undefined ? 0 : number(m, "at"), name: text(m, "name") };
}
function object(value) {
    if (typeof value !== "object" || value === null || Array.isArray(value))
        throw new Error("want an object");
    return value;
}
function text(m, name) {
    const value = m[name];
    if (typeof value !== "string" || value === "")
        throw new Error(`${name}: want a text`);
    return value;
}
function number(m, name) {
    const value = m[name];
    if (typeof value !== "number")
        throw new Error(`${name}: want a number`);
    return value;
}
/** Reads RFC 3339 as Unix milliseconds. */
export function readTime(time) {
    const at = /^\d{4}-\d\d-\d\dT/.test(time) ? Date.parse(time) : NaN;
    if (Number.isNaN(at))
        throw new Error(`${time.slice(0, 40)} is not a time as in RFC 3339`);
    return at;
}
/** What every message about a task must say. */
export function identity(task) {
    return { job: task.job, step: task.step, attempt: task.attempt, token: task.token };
}
/**
 * Writes JSON as it is sent: UTF-8 carries what is no ASCII as it is, for a limit counts what is sent, and six bytes of each such
 * character would be over one that it keeps. A queue refuses two characters raw.
 */
export function encode(message) {
    return JSON.stringify(message).replace(/[\ufffe\uffff]/g, escaped);
}
/** Writes JSON for a header, which carries ASCII alone. */
export function encodeASCII(message) {
    return JSON.stringify(message).replace(/[\u007f-\uffff]/g, escaped);
}
function escaped(character) {
    return "\\u" + character.charCodeAt(0).toString(16).padStart(4, "0");
}
/** Shortens a text to what is kept of an error, at a character's edge. */
export function clip(text, end = "") {
    const bytes = Buffer.from(text), limit = maxReasonBytes - Buffer.byteLength(end);
    if (bytes.length <= limit)
        return bytes.toString() + end;
    let cut = limit - 3;
    while ((bytes[cut] & 0xc0) === 0x80)
        cut--;
    return bytes.subarray(0, cut).toString() + "..." + end;
}
/** A number of milliseconds that never goes back, whatever is done to the clock. */
export function monotonic() {
    return performance.now();
}
