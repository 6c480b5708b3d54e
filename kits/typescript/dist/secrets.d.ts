/** Puts secrets into the input of a task just before it is done, and takes them out of what is said of it. */
import type { JSONValue, Task } from "./task.js";
/** Gives the value of a secret by its name; undefined: there is none. */
export type Secrets = (name: string) => string | undefined | Promise<string | undefined>;
/** MAKEGOOD_SECRET_NAME of the environment, the name in capitals. */
export declare function fromEnvironment(name: string): string | undefined;
/** Returns the input with its secrets, and what hides them again. */
export declare function fill(task: Task, source: Secrets): Promise<{
    input: JSONValue;
    hider: Hider;
}>;
/** Takes values out of what an agent says; their names stand in their places. */
export declare class Hider {
    #private;
    constructor(values: ReadonlyMap<string, string>);
    text(text: string): string;
    output(value: JSONValue | undefined): JSONValue | undefined;
}
