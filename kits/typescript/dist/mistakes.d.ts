/** The kind of failure that a mistake of the program is, as a panic is in Go. */
export declare const mistakeKind = "panic";
/**
 * Whether what an action threw is a mistake in its program. What is derived from JavaScript's own errors was thrown on purpose; what has a cause
 * tells of something else, as fetch does with a TypeError when nobody answers.
 */
export declare function mistaken(err: unknown): err is Error;
/**
 * Where an error began, as " (at DIRECTORY/FILE:LINE)": the innermost call that is neither of Node nor of this kit. Empty: there is none, or it
 * cannot be known.
 */
export declare function place(err: Error): string;
