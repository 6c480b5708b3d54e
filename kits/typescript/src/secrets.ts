/** Puts secrets into the input of a task just before it is done, and takes them out of what is said of it. */

import {Final} from "./errors.js";
import type {JSONValue, Task} from "./task.js";

/** Gives the value of a secret by its name; undefined: there is none. */
export type Secrets = (name: string) => string | undefined | Promise<string | undefined>;

/** MAKEGOOD_SECRET_NAME of the environment, the name in capitals. */
export function fromEnvironment(name: string): string | undefined {
  return process.env["MAKEGOOD_SECRET_" + name.toUpperCase()];
}

/** Returns the input with its secrets, and what hides them again. */
export async function fill(task: Task, source: Secrets): Promise<{input: JSONValue; hider: Hider}> {
  const values = new Map<string, string>();
  const added = new Map<string, number>();
  let input = structuredClone(task.input);
  for (const secret of task.secrets) {
    const value = await source(secret.name);
    if (value === undefined) throw new Final(`there is no secret ${secret.name} here`, {notApplied: true});
    values.set(secret.name, value);
    const before = added.get(secret.path) ?? 0;
    added.set(secret.path, before + [...value].length);
    input = put(input, secret.path, (text) => {
      const points = [...text]; // at counts code points
      points.splice(secret.at + before, 0, value);
      return points.join("");
    });
  }
  return {input, hider: new Hider(values)};
}

/** Changes the text at a JSON pointer (RFC 6901). */
function put(root: JSONValue, path: string, change: (text: string) => string): JSONValue {
  if (path === "") return change(String(root));
  const parts = path.split("/").slice(1).map((p) => p.replaceAll("~1", "/").replaceAll("~0", "~"));
  const last = parts.pop()!;
  let at = root as {[name: string]: JSONValue};
  for (const part of parts) at = at[part] as {[name: string]: JSONValue};
  at[last] = change(String(at[last]));
  return root;
}

/** Takes values out of what an agent says; their names stand in their places. */
export class Hider {
  readonly #values: {value: string; instead: string}[];

  constructor(values: ReadonlyMap<string, string>) {
    this.#values = [...values].map(([name, value]) => ({value, instead: `[secret ${name}]`})).filter(({value}) => value !== "");
    // The longest first: one may be part of another.
    this.#values.sort((a, b) => b.value.length - a.value.length);
  }

  text(text: string): string {
    return this.#values.reduce((shown, {value, instead}) => shown.replaceAll(value, () => instead), text);
  }

  output(value: JSONValue | undefined): JSONValue | undefined {
    if (this.#values.length === 0 || value === undefined || value === null) return value;
    if (typeof value === "string") return this.text(value);
    if (Array.isArray(value)) return value.map((v) => this.output(v) ?? null);
    if (typeof value === "object") {
      return Object.fromEntries(Object.entries(value).map(([name, v]) => [this.text(name), this.output(v) ?? null]));
    }
    const shown = JSON.stringify(value);
    return this.#values.find((v) => v.value === shown)?.instead ?? value;
  }
}
