/** Large payloads: bytes that are too large for a message, written once and passed on by reference (docs/large-payloads.md). */
import { Readable } from "node:stream";
import type { Attempt } from "./attempt.js";
import type { Taken } from "./door.js";
import type { JSONValue } from "./task.js";
export declare const jsonType = "application/json";
export declare const altered = "the payload is not what was written";
/** What stands for the bytes in JSON. It may stand anywhere in an output. */
export type PayloadReference = {
    $payload: {
        sha256: string;
        bytes: number;
        type?: string;
        by?: string;
    };
};
/** What a payload is written from. Only what can be read again, bytes or a file, is sent again where the line broke. */
export type PayloadSource = Uint8Array | {
    file: string | URL;
} | AsyncIterable<Uint8Array> | Iterable<Uint8Array>;
/** The inside of a reference. */
export interface Reference {
    readonly sha256: string;
    readonly bytes: number;
    readonly type: string;
    readonly by: string;
}
/**
 * What a door has that carries payloads. Each method asks once. It rejects with a Final where no other attempt would do better, with
 * an Ended where the attempt has ended, and with a NoAnswer where it is to be asked again.
 */
export interface PayloadStore {
    /** Opens the bytes from first to end, which is the one behind the last. They may end too early. */
    openPayload(taken: Taken, reference: Reference, first: number, end: number, signal: AbortSignal): Promise<Readable>;
    /** Sends bytes, and gives their reference. length: how many there will be, if that is known. What pieces throws it throws, and nothing is stored then. */
    sendPayload(taken: Taken, type: string, pieces: AsyncIterable<Uint8Array>, length: number | undefined, signal: AbortSignal): Promise<JSONValue>;
}
/** Writes and reads the payloads of one attempt's job. */
export declare class Payloads {
    #private;
    constructor(attempt: Attempt, taken: Taken, store: PayloadStore | undefined);
    /** Whether the door carries any. */
    get can(): boolean;
    /** Lets go of what nobody has read to its end. */
    close(): void;
    open(value: unknown, offset: number, length: number | undefined): Promise<Readable>;
    write(source: PayloadSource, type: string): Promise<PayloadReference>;
    /** The JSON that a value is, where it is nothing but a reference to such; any other is itself. */
    value(what: string, value: JSONValue): Promise<JSONValue>;
    /** The same for an undo: what cannot be read into memory as JSON is given as the reference that it is, so that it is undone anyway. */
    told(what: string, value: JSONValue): Promise<JSONValue>;
}
/** Why a part that is answered, as Content-Range says which, is not what was asked for, if it is not: of a part no hash tells. */
export declare function otherPart(range: string | undefined, bytes: number, first: number, end: number): Error | undefined;
/** What is awaited, or a rejection with the reason of a signal, whichever comes first. */
export declare function unless<T>(signal: AbortSignal, awaited: Promise<T>): Promise<T>;
