/**
 * Write agents for Makegood: the code that does the steps of jobs by calling a remote service, and undoes them.
 *
 * Before an action runs, its attempt has been claimed, so one attempt runs at most once; a step may take several, so an action
 * passes task.key on to the remote service, which does the same thing once for the same key. What is too large for a message is
 * written and read by attempt.writePayload and attempt.openPayload. It needs nothing but Node;
 * agents of a stack on AWS need its SDK (makegood-agent/sqs).
 */
export {Agent} from "./agent.js";
export type {ActionOptions, Do, Parse, UndoDo} from "./agent.js";
export type {Attempt} from "./attempt.js";
export {HTTPDoor} from "./door.js";
export type {Door, Extended, HTTPDoorOptions, Message, Taken} from "./door.js";
export {Ended, Failure, Final, HeartbeatError, NoAnswer, NotApplied, Over, Refused, RetryAfter, SlowDown, Wait, Withdrawn} from "./errors.js";
export type {FailureOptions} from "./errors.js";
export type {PayloadReference, PayloadSource, PayloadStore, Reference} from "./payload.js";
export {Runner, doorFromEnvironment, run} from "./runner.js";
export type {RunOptions} from "./runner.js";
export type {Secrets} from "./secrets.js";
export type {JSONValue, Task, TaskSecret, Undo} from "./task.js";
