/**
 * The large payloads of a stack on AWS, in its bucket. Keys and rights are those of docs/decisions/0045-payloads-in-s3.md: an agent's
 * role may write under its own name and incoming, and read what agents and submitters wrote.
 */
import { createHash, randomUUID } from "node:crypto";
import { Final, NoAnswer } from "./errors.js";
import { altered, otherPart } from "./payload.js";
// The smallest part that S3 takes: so much is in memory while a payload is written.
const partBytes = 5 << 20;
/** A PayloadStore in a bucket. where is BUCKET/STACK, as MAKEGOOD_PAYLOADS and the output Payloads of a stack say it. */
export class S3Payloads {
    #bucket;
    #prefix;
    #s3;
    constructor(where, s3) {
        const [bucket, prefix, ...more] = where.split("/");
        if (!bucket || !prefix || more.length > 0)
            throw new TypeError(`${JSON.stringify(where)} is not where payloads are: want BUCKET/STACK`);
        this.#bucket = bucket;
        this.#prefix = prefix;
        this.#s3 = s3;
    }
    async openPayload(taken, reference, first, end, signal) {
        const part = first > 0 || end < reference.bytes;
        const got = await meaning(this.#s3.getObject({
            Bucket: this.#bucket, Key: this.#key(taken.task.job, reference.by, reference.sha256), ...(part ? { Range: `bytes=${first}-${end - 1}` } : {}),
        }, { abortSignal: signal }));
        const whole = got.ContentLength === reference.bytes ? undefined : new Final(`${altered}: it has ${got.ContentLength} bytes`);
        const wrong = part ? otherPart(got.ContentRange, reference.bytes, first, end) : whole;
        if (wrong) {
            got.Body.destroy();
            throw wrong;
        }
        return got.Body;
    }
    async sendPayload(taken, type, pieces, _length, signal) {
        const hash = createHash("sha256"), parts = partsOf(pieces), { agent, job } = taken.task;
        const part = (await parts.next()).value, after = await parts.next();
        let bytes = part.length, digest;
        if (after.done) {
            digest = hash.update(part).digest();
            await meaning(this.#s3.putObject({
                Bucket: this.#bucket, Key: this.#key(job, agent, digest.toString("hex")), Body: part, ChecksumSHA256: digest.toString("base64"),
            }, { abortSignal: signal }));
        }
        else {
            [bytes, digest] = await this.#sendParts(taken, hash, chain(part, after.value, parts), signal);
        }
        return { $payload: { sha256: digest.toString("hex"), bytes, by: agent, ...(type ? { type } : {}) } };
    }
    #key(job, by, sha256) {
        return `${this.#prefix}/${by ? `agent/${by}` : "submitter"}/${job}/${sha256}`;
    }
    /** Writes what is longer than a part under a key that nobody reads. Only what is whole gets its name, and the store hashes it. */
    async #sendParts({ task: { agent, job } }, hash, parts, signal) {
        const at = { Bucket: this.#bucket, Key: `${this.#prefix}/incoming/agent/${agent}/${randomUUID()}` };
        const { UploadId } = await meaning(this.#s3.createMultipartUpload(at, { abortSignal: signal }));
        const sent = [];
        let bytes = 0;
        try {
            for await (const part of parts) {
                const PartNumber = sent.length + 1;
                const done = await meaning(this.#s3.uploadPart({ ...at, UploadId, PartNumber, Body: part }, { abortSignal: signal }));
                sent.push({ PartNumber, ETag: done["ETag"], ...(done["ChecksumCRC32"] ? { ChecksumCRC32: done["ChecksumCRC32"] } : {}) });
                hash.update(part);
                bytes += part.length;
            }
            await meaning(this.#s3.completeMultipartUpload({ ...at, UploadId, MultipartUpload: { Parts: sent } }, { abortSignal: signal }));
        }
        catch (err) {
            await this.#s3.abortMultipartUpload({ ...at, UploadId }).catch(() => { }); // What stays, the lifecycle of the bucket takes.
            throw err;
        }
        const digest = hash.digest();
        try {
            await this.#name(at.Key, this.#key(job, agent, digest.toString("hex")), digest, signal);
        }
        finally {
            await this.#s3.deleteObject(at).catch(() => { });
        }
        return [bytes, digest];
    }
    async #name(scratch, key, digest, signal) {
        const { CopyObjectResult: result } = await meaning(this.#s3.copyObject({
            Bucket: this.#bucket, Key: key, CopySource: `${this.#bucket}/${scratch.split("/").map(encodeURIComponent).join("/")}`,
            // Without that directive S3 refuses some copies, and keeps what somebody said of the original.
            MetadataDirective: "REPLACE", ChecksumAlgorithm: "SHA256",
        }, { abortSignal: signal }));
        const hashed = result?.ChecksumSHA256;
        if (hashed && !hashed.includes("-") && result.ChecksumType !== "COMPOSITE" && hashed !== digest.toString("base64")) {
            throw new NoAnswer("the store has hashed other bytes than were sent");
        }
    }
}
/** Pieces as parts: all but the last are as large as a part must be. There is always one. */
async function* partsOf(pieces) {
    let held = [], bytes = 0, none = true;
    for await (const piece of pieces) {
        for (let rest = piece; rest.length > 0;) {
            const taken = rest.subarray(0, partBytes - bytes);
            held.push(taken);
            bytes += taken.length;
            rest = rest.subarray(taken.length);
            if (bytes === partBytes) {
                yield Buffer.concat(held);
                [held, bytes, none] = [[], 0, false];
            }
        }
    }
    if (bytes > 0 || none)
        yield Buffer.concat(held);
}
async function* chain(first, second, rest) {
    yield first;
    yield second;
    yield* rest;
}
/** Says what a store refused with. What there is no word for may be tried again. */
async function meaning(asked) {
    try {
        return await asked;
    }
    catch (err) {
        const { name = "", message = "", $metadata } = err;
        const status = $metadata?.httpStatusCode, why = `${status ?? ""} ${name}: ${message}`.trim();
        if (status === 404 && name !== "NoSuchBucket" && name !== "NoSuchUpload") {
            throw new Final(`the payload is not there, for this job and by this writer: ${why}`, { cause: err });
        }
        if (status === 403 && name !== "RequestTimeTooSkewed")
            throw new Final(`access to the payload store is denied: ${why}`, { cause: err });
        throw new NoAnswer(why, { cause: err });
    }
}
