// The agent of the conformance suite, in JavaScript with the kit for TypeScript. Its twins in Go and Python do the same.

import {createHash} from "node:crypto";
import {existsSync} from "node:fs";
import {mkdtemp, rm, writeFile} from "node:fs/promises";
import {tmpdir} from "node:os";
import {join} from "node:path";
import {setTimeout as sleep} from "node:timers/promises";

import {Agent, Failure, Final, HeartbeatError, SlowDown, Wait, Withdrawn, run} from "makegood-agent";

const line = Buffer.from("0123456789abcde\n");

// Bytes that can be read once, in pieces: those of a line, again and again.
async function* lines(n) {
  const piece = Buffer.concat(Array(4096).fill(line));
  for (; n > 0; n -= piece.length) yield piece.subarray(0, n);
}

// Bytes, and then an error that is the source's own.
async function* broken(n) {
  yield* lines(n);
  throw Object.assign(new Error("the source broke"), {code: "EIO"});
}

// What a program throws on purpose, although JavaScript's own are mistakes.
class Declined extends TypeError {}

function deep(given) {
  return [deep(given)];
}

async function all(pieces) {
  const read = [];
  for await (const piece of pieces) read.push(piece);
  return Buffer.concat(read);
}

const probe = new Agent("probe")
  .do("echo", (given) => given)
  .do("info", (_given, {task}) => ({
    job: task.job, workflow: task.workflow, step: task.step, round: task.round, attempt: task.attempt, key: task.key,
    completion: task.completion, shared: task.shared, traceparent: task.traceparent,
  }))
  .do("fail", ({message, final, notApplied, retryAfterMs, kind}) => {
    throw new Failure(message, {final, notApplied, retryAfterMs, kind});
  })
  .do("slowDown", ({message, ms, times}, {task}) => {
    if (task.attempt <= times) throw new SlowDown(message, ms, {kind: "busy"});
    return "taken";
  })
  .do("crash", () => {
    throw new Error("it broke");
  })
  // Fails as programs do, and as what they call does.
  .do("err", async ({how}) => {
    switch (how) {
      case "none": return null.name;
      case "name": return nosuch;
      case "deep": return deep(how);
      case "library": return Buffer.from(undefined);
      case "long": throw new TypeError("ü".repeat(2000));
      case "declined": throw new Declined("no such account");
      case "no JSON": return JSON.parse("<html>");
      default: return fetch("http://127.0.0.1:1"); // nobody answers
    }
  })
  .do("sleep", async ({ms}, attempt) => {
    await attempt.wait(ms);
    return "slept";
  })
  .do("deaf", async ({ms}) => {
    await sleep(ms);
    return "slept";
  })
  .do("heartbeat", async ({times, ms}, attempt) => {
    let failed = 0;
    for (let n = 0; n < times; n++) {
      await attempt.wait(ms);
      try {
        await attempt.heartbeat();
      } catch (err) {
        if (err instanceof Withdrawn) throw new Failure("withdrawn", {notApplied: true});
        if (!(err instanceof HeartbeatError)) throw err;
        failed++;
      }
    }
    return {failed};
  })
  .do("block", async ({ms}, attempt) => {
    await attempt.keepAlive(() => sleep(ms));
    return "blocked";
  })
  // Works until there is a file, and heartbeats, or is kept alive.
  .do("hold", async ({begun, until, alive}, attempt) => {
    await writeFile(begun, "");
    if (alive) {
      await attempt.keepAlive(async () => {
        while (!existsSync(until)) await sleep(50);
      });
      return "kept alive";
    }
    while (!existsSync(until)) {
      await attempt.heartbeat();
      await attempt.wait(50);
    }
    return "heartbeats";
  })
  .do("report", async ({progress}, attempt) => {
    await attempt.heartbeat(progress);
    return "reported";
  })
  .do("later", ({deadline}) => {
    throw new Wait(new Date(deadline));
  })
  .do("large", ({bytes, of = "x"}) => of.repeat(bytes))
  .do("press", async ({bytes, from, type}, attempt) => {
    if (from === "memory") return {report: await attempt.writePayload(await all(lines(bytes)), type)};
    if (from === "broken") return {report: await attempt.writePayload(broken(bytes), type)};
    if (from !== "file") return {report: await attempt.writePayload(lines(bytes), type)};
    const folder = await mkdtemp(join(tmpdir(), "probe")), file = join(folder, "report");
    try {
      await writeFile(file, lines(bytes));
      return {report: await attempt.writePayload({file}, type)};
    } finally {
      await rm(folder, {recursive: true});
    }
  })
  .do("pressLater", async ({ms, bytes}, attempt) => {
    await attempt.wait(ms);
    return {report: await attempt.writePayload(lines(bytes))};
  })
  .do("inspect", async ({report, offset, length}, attempt) => {
    const hash = createHash("sha256");
    let bytes = 0;
    for await (const piece of await attempt.openPayload(report, {offset, length})) {
      hash.update(piece);
      bytes += piece.length;
    }
    return {bytes, sha256: hash.digest("hex")};
  })
  .do("passOn", (given) => given, undefined, {references: true})
  .do("unsayable", () => 1n)
  .do("parsed", (given) => given, ({must}) => {
    if (must === undefined) throw new Error("must");
    return must;
  })
  .undo("unecho", (given, done, {task: {undo}}) => {
    if (given.quiet) return;
    if (given.keys) throw new Final(JSON.stringify(undo.keys));
    throw new Final(JSON.stringify({done, forwardKey: undo.forwardKey, outcome: undo.outcome}));
  });

await run(probe, undefined, {concurrency: Number(process.env.CONCURRENCY) || undefined, patienceMs: Number(process.env.PATIENCE_MS)});
