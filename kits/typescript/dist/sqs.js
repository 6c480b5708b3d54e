/**
 * The door of a stack on AWS: tasks from the agent's queue, claims in its table, replies to the events queue. It needs
 * @aws-sdk/client-sqs and @aws-sdk/client-dynamodb, and @aws-sdk/client-s3 for large payloads. docs/messages.md says what an agent must keep to, and which rights its
 * role needs. Region, credentials and endpoint are what the SDK finds.
 */
import { randomUUID } from "node:crypto";
import { ConditionalCheckFailedException, DynamoDBClient, GetItemCommand, UpdateItemCommand } from "@aws-sdk/client-dynamodb";
import { DeleteMessageCommand, GetQueueUrlCommand, ReceiveMessageCommand, SendMessageCommand, SQSClient } from "@aws-sdk/client-sqs";
import { Refused } from "./errors.js";
import { Newer, encode, monotonic, readTask, readTime } from "./task.js";
export { S3Payloads } from "./s3.js";
// A message of a newer release is left: for a minute at first, 15 at most, and for 13 days in all.
const leaveFor = 60, maxLeaveFor = 15 * 60, maxLeft = 13 * 86_400;
const leftSince = '{"leftSince":"';
// What SQS says of a message that it will never take.
const refusals = new Set(["InvalidMessageContents", "InvalidParameterValue", "MessageTooLong"]);
const keepClaim = 2 * 86_400;
const maxClaimMs = 30 * 86_400_000;
/** The queues have prefix before their names, the table is that of the stack. */
export class SQSDoor {
    payloads;
    #table;
    #prefix;
    #instance;
    #wait;
    #sqs;
    #dynamodb;
    #log;
    #urls = new Map();
    constructor(table, prefix, options = {}) {
        this.payloads = options.payloads;
        this.#table = table;
        this.#prefix = prefix;
        this.#instance = options.instance ?? "ts-" + randomUUID().slice(0, 12);
        this.#wait = options.wait ?? 5;
        this.#sqs = options.sqs ?? new SQSClient({});
        this.#dynamodb = options.dynamodb ?? new DynamoDBClient({});
        this.#log = options.log ?? ((line) => console.error(`makegood-agent: ${line}`));
    }
    async take(agent, limit) {
        const QueueUrl = await this.#url(`tasks-${agent}`);
        const got = await this.#sqs.send(new ReceiveMessageCommand({
            QueueUrl, MaxNumberOfMessages: Math.min(limit, 10), WaitTimeSeconds: this.#wait,
            MessageSystemAttributeNames: ["ApproximateReceiveCount", "MessageGroupId"],
        }));
        const taken = await Promise.all((got.Messages ?? []).map(async (message) => {
            try {
                const one = await this.#claim(agent, message);
                if (!one)
                    await this.#sqs.send(new DeleteMessageCommand({ QueueUrl, ReceiptHandle: message.ReceiptHandle }));
                return one;
            }
            catch (err) {
                // Whether the last write happened is not known. Not deleted, the message comes again; what was claimed is then
                // another's to end, when its CompleteBy has passed.
                this.#log(`message ${message.MessageId} stays: ${String(err)}`);
                return undefined;
            }
        }));
        return taken.filter((one) => one !== undefined);
    }
    async last() {
        return [];
    }
    async heartbeat(taken, progress) {
        const { task } = taken, now = Date.now();
        const by = Math.min(now + task.timeoutMs, readTime(taken.startedAt) + (task.totalMs ?? maxClaimMs));
        let old;
        try {
            await this.#extend(taken, by, "Attempt = :n AND LockedBy = :me AND attribute_not_exists(Closed) AND attribute_not_exists(Ends) AND CompleteBy <= :by", progress, now);
            return { status: "held", leftMs: by - now };
        }
        catch (err) {
            old = await this.#old(err, task);
        }
        if (old["LockedBy"]?.S !== taken.lockedBy || old["Attempt"]?.N !== String(task.attempt) || old["Closed"])
            return { status: "over", leftMs: 0 };
        let stored = Number(old["CompleteBy"]?.N);
        if (!old["Ends"])
            return { status: "held", leftMs: stored - now }; // it stands later already
        const ends = Math.min(by, Number(old["Ends"].N));
        if (ends > stored) {
            try {
                await this.#extend(taken, ends, "Attempt = :n AND LockedBy = :me AND attribute_not_exists(Closed) AND CompleteBy <= :by");
                stored = ends;
            }
            catch (err) {
                if (err instanceof ConditionalCheckFailedException)
                    return { status: "over", leftMs: 0 };
                throw err;
            }
        }
        return { status: "withdrawn", leftMs: stored - now };
    }
    async reply(taken, message) {
        try {
            await this.#send(taken.task.replyTo, message, taken.task.job);
        }
        catch (err) {
            if (err instanceof Error && refusals.has(err.name))
                throw new Refused(err.message, { cause: err });
            throw err;
        }
    }
    async finish(taken) {
        await this.#sqs.send(new DeleteMessageCommand({ QueueUrl: await this.#url(`tasks-${taken.task.agent}`), ReceiptHandle: taken.ticket }));
    }
    stop() {
        // A receive that is cut off would hide what it was given until the queue shows it again: it ends by itself.
    }
    /** A queue's name in a message is the one inside the deployment. */
    async #url(name) {
        let url = this.#urls.get(name);
        if (url === undefined) {
            url = (await this.#sqs.send(new GetQueueUrlCommand({ QueueName: this.#prefix + name }))).QueueUrl;
            this.#urls.set(name, url);
        }
        return url;
    }
    /** Claims the attempt of a message. undefined: it is dealt with, or another's. What it throws leaves that open. */
    async #claim(agent, message) {
        let task;
        try {
            task = readTask(JSON.parse(message.Body));
            if (task.agent !== agent)
                throw new Error(`a task for agent ${task.agent}, but here runs only ${agent}`);
        }
        catch (err) {
            const why = err.message;
            await (err instanceof Newer ? this.#leave(agent, message, why) : this.#quarantine(agent, message, why));
            return undefined;
        }
        // The budget counts on the monotonic clock, from before the claim: the wall clock may jump.
        const began = monotonic(), now = Date.now(), startedAt = new Date(now).toISOString(), ticket = message.ReceiptHandle;
        if (task.shared) {
            const budget = Math.min(task.timeoutMs, (task.completeBy ?? now) - now);
            return budget > 0 ? { task, lockedBy: "", startedAt, began, expires: began + budget, ticket } : undefined;
        }
        const lockedBy = `${this.#instance}:${randomUUID()}`;
        if (!await this.#writeClaim(task, lockedBy, now))
            return undefined;
        return { task, lockedBy, startedAt, began, expires: began + task.timeoutMs, ticket, table: this.#table };
    }
    /** Takes the attempt, and says whether it did: one conditional write of its step's claim item. */
    async #writeClaim(task, lockedBy, now) {
        if (now > task.claimUntil)
            return false;
        const by = now + task.timeoutMs;
        try {
            await this.#dynamodb.send(new UpdateItemCommand({
                TableName: this.#table, Key: key(task), ConditionExpression: "attribute_not_exists(PK) OR Attempt < :n",
                UpdateExpression: "SET Attempt=:n, LockedBy=:me, StartedAt=:at, CompleteBy=:by, ExpiresAt=:expires REMOVE Closed, Ends",
                ExpressionAttributeValues: {
                    ":me": { S: lockedBy }, ":n": { N: String(task.attempt) }, ":at": { N: String(now) }, ":by": { N: String(by) }, ":expires": expires(task, by),
                },
                ReturnValuesOnConditionCheckFailure: "ALL_OLD",
            }));
            return true;
        }
        catch (err) {
            // Our own write, if the SDK tried again and met it.
            const old = await this.#old(err, task);
            return old["LockedBy"]?.S === lockedBy && old["Attempt"]?.N === String(task.attempt) && !old["Closed"];
        }
    }
    /** The item that a condition failed on. One that did not come back says nothing, and is read. */
    async #old(err, task) {
        if (!(err instanceof ConditionalCheckFailedException))
            throw err;
        if (err.Item)
            return err.Item;
        const { Item: item } = await this.#dynamodb.send(new GetItemCommand({ TableName: this.#table, Key: key(task), ConsistentRead: true }));
        if (!item)
            throw err;
        return item;
    }
    async #extend(taken, by, condition, progress, now = 0) {
        const { task } = taken, reports = progress !== undefined;
        await this.#dynamodb.send(new UpdateItemCommand({
            TableName: this.#table, Key: key(task), ConditionExpression: condition,
            UpdateExpression: "SET CompleteBy = :by, ExpiresAt = :expires" + (reports ? ", Progress = :progress" : ""),
            ExpressionAttributeValues: {
                ":n": { N: String(task.attempt) }, ":me": { S: taken.lockedBy }, ":by": { N: String(by) }, ":expires": expires(task, by),
                ...(reports ? { ":progress": { M: { Value: { S: encode(progress) }, At: { N: String(now) } } } } : {}),
            },
            ReturnValuesOnConditionCheckFailure: "ALL_OLD",
        }));
    }
    async #send(queue, message, group) {
        await this.#sqs.send(new SendMessageCommand({ QueueUrl: await this.#url(queue), MessageBody: encode(message), MessageGroupId: group }));
    }
    /** Sends a message again, delayed: returned to its queue it would be counted, and end among the dead letters. */
    async #leave(agent, message, why) {
        const now = Math.floor(Date.now() / 1000), { body, since } = left(message.Body, now);
        if (now - since > maxLeft)
            return this.#quarantine(agent, message, `no release that understands it came in ${maxLeft / 86_400} days: ${why}`);
        this.#log(`message ${message.MessageId} is left to a newer release: ${why}`);
        await this.#sqs.send(new SendMessageCommand({
            QueueUrl: await this.#url(`tasks-${agent}`), MessageBody: body, DelaySeconds: Math.min(Math.max(now - since, leaveFor), maxLeaveFor),
            ...(message.Attributes?.MessageGroupId ? { MessageGroupId: message.Attributes.MessageGroupId } : {}),
        }));
    }
    async #quarantine(agent, message, reason) {
        // The reason may quote the message, so it is in quarantine beside it, and not in the log.
        this.#log(`message ${message.MessageId} is poison, and goes into quarantine`);
        await this.#send("quarantine", {
            v: 1, type: "Quarantined", reason: reason.slice(0, 1000), source: `tasks-${agent}`, messageId: message.MessageId,
            receiveCount: Number(message.Attributes?.ApproximateReceiveCount), body: message.Body,
        }, "quarantine");
    }
}
function key(task) {
    return { PK: { S: `claim#${task.agent}#${task.job}` }, SK: { S: `${task.birth}#${task.step}` } };
}
function expires(task, by) {
    return { N: String(Math.floor(Math.max(task.claimUntil, by) / 1000) + keepClaim + 1) };
}
/** Gives a message as it is sent again, and since when it is left: said at its very front, where alone it counts. */
export function left(body, now) {
    body = body.trimStart();
    if (body.startsWith(leftSince)) {
        try {
            const since = Math.floor(readTime(body.slice(leftSince.length).split('"', 1)[0]) / 1000);
            if (since <= now)
                return { body, since };
        }
        catch {
            // It does not count.
        }
    }
    return { body: `${leftSince}${new Date(now * 1000).toISOString()}",${body.slice(1)}`, since: now };
}
