/**
 * The large payloads of a stack on AWS, in its bucket. Keys and rights are those of docs/decisions/0045-payloads-in-s3.md: an agent's
 * role may write under its own name and incoming, and read what agents and submitters wrote.
 */
import { Readable } from "node:stream";
import type { Taken } from "./door.js";
import type { PayloadStore, Reference } from "./payload.js";
import type { JSONValue } from "./task.js";
type Call = (input: any, options?: {
    abortSignal?: AbortSignal;
}) => Promise<any>;
/** What is needed of S3: an S3 of @aws-sdk/client-s3 is one. */
export interface S3Client {
    getObject: Call;
    putObject: Call;
    createMultipartUpload: Call;
    uploadPart: Call;
    completeMultipartUpload: Call;
    abortMultipartUpload: Call;
    copyObject: Call;
    deleteObject: Call;
}
/** A PayloadStore in a bucket. where is BUCKET/STACK, as MAKEGOOD_PAYLOADS and the output Payloads of a stack say it. */
export declare class S3Payloads implements PayloadStore {
    #private;
    constructor(where: string, s3: S3Client);
    openPayload(taken: Taken, reference: Reference, first: number, end: number, signal: AbortSignal): Promise<Readable>;
    sendPayload(taken: Taken, type: string, pieces: AsyncIterable<Uint8Array>, _length: number | undefined, signal: AbortSignal): Promise<JSONValue>;
}
export {};
