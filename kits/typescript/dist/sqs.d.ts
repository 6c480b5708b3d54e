/**
 * The door of a stack on AWS: tasks from the agent's queue, claims in its table, replies to the events queue. It needs
 * @aws-sdk/client-sqs and @aws-sdk/client-dynamodb, and @aws-sdk/client-s3 for large payloads. docs/messages.md says what an agent must keep to, and which rights its
 * role needs. Region, credentials and endpoint are what the SDK finds.
 */
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { SQSClient } from "@aws-sdk/client-sqs";
import type { Door, Extended, Message, Taken } from "./door.js";
import type { PayloadStore } from "./payload.js";
import type { JSONValue } from "./task.js";
export { S3Payloads } from "./s3.js";
export type { S3Client } from "./s3.js";
export interface SQSDoorOptions {
    /** Names this process, in LockedBy. */
    instance?: string;
    /** How many seconds a receive waits: so long stop may take, too. */
    wait?: number;
    sqs?: SQSClient;
    dynamodb?: DynamoDBClient;
    /** Where the stack's large payloads are, such as new S3Payloads("BUCKET/STACK", new S3()). Without, there are none. */
    payloads?: PayloadStore | undefined;
    /** Hears of what goes wrong, and never of payloads. */
    log?: (line: string) => void;
}
/** The queues have prefix before their names, the table is that of the stack. */
export declare class SQSDoor implements Door {
    #private;
    readonly payloads: PayloadStore | undefined;
    constructor(table: string, prefix: string, options?: SQSDoorOptions);
    take(agent: string, limit: number): Promise<Taken[]>;
    last(): Promise<Taken[]>;
    heartbeat(taken: Taken, progress: JSONValue | undefined): Promise<Extended>;
    reply(taken: Taken, message: Message): Promise<void>;
    finish(taken: Taken): Promise<void>;
    stop(): void;
}
/** Gives a message as it is sent again, and since when it is left: said at its very front, where alone it counts. */
export declare function left(body: string, now: number): {
    body: string;
    since: number;
};
