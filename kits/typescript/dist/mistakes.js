import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
/** The kind of failure that a mistake of the program is, as a panic is in Go. */
export const mistakeKind = "panic";
// What JavaScript throws when a program is wrong, whatever it was given and whoever answers. Not SyntaxError: JSON.parse throws it for what a
// remote service answered.
const mistakes = [TypeError.prototype, ReferenceError.prototype, RangeError.prototype];
// What Node throws for the same, by its codes.
const codes = ["ERR_INVALID_ARG_TYPE", "ERR_OUT_OF_RANGE", "ERR_ASSERTION"];
const kit = dirname(fileURLToPath(import.meta.url));
/**
 * Whether what an action threw is a mistake in its program. What is derived from JavaScript's own errors was thrown on purpose; what has a cause
 * tells of something else, as fetch does with a TypeError when nobody answers.
 */
export function mistaken(err) {
    if (!(err instanceof Error))
        return false;
    const code = err.code;
    if (code !== undefined)
        return codes.includes(code);
    return !("cause" in err) && mistakes.includes(Object.getPrototypeOf(err));
}
/**
 * Where an error began, as " (at DIRECTORY/FILE:LINE)": the innermost call that is neither of Node nor of this kit. Empty: there is none, or it
 * cannot be known.
 */
export function place(err) {
    for (const line of (err.stack ?? "").split("\n")) {
        const found = /^\s+at (?:.* \()?(?:async )?((?:file:\/\/|\/|[A-Za-z]:\\).*?):(\d+):\d+\)?$/.exec(line);
        if (!found)
            continue;
        const file = found[1].startsWith("file:") ? fileURLToPath(found[1]) : found[1];
        if (dirname(file) === kit)
            continue;
        return ` (at ${file.split(/[\\/]/).slice(-2).join("/")}:${found[2]})`;
    }
    return "";
}
