"""An agent that is not written in Go: payments, in plain Python with boto3.

It takes tasks from its queue, claims each attempt in the table by one conditional write, works, and
replies to the queue that the task names. docs/messages.md says what it must keep to. It calls nobody:
where charge() and refund() stand, a real one calls its payment service with task["key"].

    MAKEGOOD_TABLE=jobs MAKEGOOD_QUEUE_PREFIX=makegood- python3 agent.py

Region, credentials and endpoint come from the environment, as boto3 reads them.
"""

import calendar
import json
import os
import signal
import sys
import time
import uuid

import boto3
from botocore.exceptions import BotoCoreError, ClientError

AGENT = "payments"
MAX_OUTPUT_BYTES = 256 * 1024
INSTANCE = f"{AGENT}-py-{uuid.uuid4().hex[:8]}"


class Final(Exception):
    """A failure that no other attempt would mend, and that surely had no effect."""


class Unsettled(Exception):
    """It is not known whether an attempt is mine: its message must come again."""


def charge(task):
    """A step. The receipt is the same for every attempt, because the key is."""
    return {"receipt": "r-" + task["key"], "amount": task["input"]["amount"]}


def refund(task):
    """Its undo. It must work without an output: the outcome of the step may be unknown."""
    return {"refunded": task["undo"]["forwardKey"]}


ACTIONS = {"charge": charge, "refund": refund}


def log(what, **values):
    print(json.dumps({"msg": what, **values}), flush=True)


class Agent:
    def __init__(self, table, prefix):
        self.table, self.prefix = table, prefix
        self.dynamodb, self.sqs = boto3.client("dynamodb"), boto3.client("sqs")
        self.urls = {}
        self.running = True

    def url(self, name):
        if name not in self.urls:
            self.urls[name] = self.sqs.get_queue_url(QueueName=self.prefix + name)["QueueUrl"]
        return self.urls[name]

    def run(self):
        tasks = self.url("tasks-" + AGENT)
        log("ready", agent=AGENT, instance=INSTANCE)
        while self.running:
            got = self.sqs.receive_message(
                QueueUrl=tasks, MaxNumberOfMessages=10, WaitTimeSeconds=5,
                MessageSystemAttributeNames=["ApproximateReceiveCount"],
            )
            for message in got.get("Messages", []):
                try:
                    self.handle(message)
                except (BotoCoreError, ClientError, Unsettled) as err:
                    # Whether the last write happened is not known. Not deleted, the message comes again;
                    # what was claimed here is then another's to end, when its CompleteBy has passed.
                    log("the message stays", messageId=message["MessageId"], error=str(err))
                    continue
                self.sqs.delete_message(QueueUrl=tasks, ReceiptHandle=message["ReceiptHandle"])

    def handle(self, message):
        """Does one task. When it returns, the message is dealt with."""
        try:
            task = read(message["Body"])
        except (ValueError, KeyError, TypeError) as err:
            return self.quarantine(message, str(err))
        # The budget counts on the monotonic clock, from before the claim: the wall clock may jump.
        begun, now = time.monotonic(), int(time.time() * 1000)
        locked_by = ""
        if task["exclusive"]:
            locked_by = f"{INSTANCE}:{uuid.uuid4().hex}"
            if not self.claim(task, locked_by, now):
                return log("not mine", job=task["job"], step=task["step"], attempt=task["attempt"])
            budget = task["timeoutMs"] / 1000
        else:
            budget = (parse_time(task["completeBy"]) - now) / 1000
        reply = work(task, locked_by)
        if time.monotonic() - begun >= budget - min(1, budget / 10):
            # Somebody else may have begun: say nothing, not even an error.
            return log("too late", job=task["job"], step=task["step"], attempt=task["attempt"])
        self.send(task["replyTo"], reply, task["job"])
        log(reply["type"], job=task["job"], step=task["step"], attempt=task["attempt"])

    def claim(self, task, locked_by, now):
        """Takes the attempt, and says whether it did. The expressions are those of docs/architecture.md."""
        complete_by = now + task["timeoutMs"]
        names = {"#open": "Open", "#claims": "Claims", "#step": task["step"], "#rev": "ClaimsRev",
                 "#attempt": "Attempt", "#key": "CompleteBy"}
        values = {
            ":attempt": {"N": str(task["attempt"])}, ":one": {"N": "1"}, ":mine": {"N": str(complete_by)},
            ":slot": {"M": {
                "Attempt": {"N": str(task["attempt"])}, "LockedBy": {"S": locked_by},
                "StartedAt": {"N": str(now)}, "CompleteBy": {"N": str(complete_by)},
            }},
        }
        update = "SET #claims.#step = :slot, #rev = #rev + :one"
        condition = ("#open.#step = :attempt AND "
                     "(attribute_not_exists(#claims.#step) OR #claims.#step.#attempt < :attempt) AND ")
        stays = (update, condition + "(attribute_not_exists(#key) OR #key <= :mine)")
        lowers = (update + ", #key = :mine", condition + "#key > :mine")
        for expressions in (stays, lowers, stays, lowers):
            try:
                self.dynamodb.update_item(
                    TableName=self.table, Key={"PK": {"S": task["job"]}, "SK": {"S": "job"}},
                    UpdateExpression=expressions[0], ConditionExpression=expressions[1],
                    ExpressionAttributeNames=names, ExpressionAttributeValues=values,
                    ReturnValuesOnConditionCheckFailure="ALL_OLD",
                )
                return True
            except self.dynamodb.exceptions.ConditionalCheckFailedException as err:
                old = err.response.get("Item")
            if not old:
                raise Unsettled("the claim failed, and DynamoDB does not say why")  # old SDKs leave the item out
            slot = old.get("Claims", {}).get("M", {}).get(task["step"], {}).get("M", {})
            if slot.get("LockedBy", {}).get("S") == locked_by:
                return True  # boto3 tried again: it was my own write
            open_attempt = old.get("Open", {}).get("M", {}).get(task["step"], {}).get("N")
            if open_attempt != str(task["attempt"]) or int(slot.get("Attempt", {}).get("N", 0)) >= task["attempt"]:
                return False  # withdrawn, or another's
            # Only the job's CompleteBy stood in the way: the next form lowers it.
        raise Unsettled("the job's CompleteBy keeps moving")

    def send(self, queue, message, group):
        # json.dumps escapes all that is not ASCII, and so all that SQS refuses.
        self.sqs.send_message(QueueUrl=self.url(queue), MessageBody=json.dumps(message), MessageGroupId=group)

    def quarantine(self, message, reason):
        log("poison", messageId=message["MessageId"], reason=reason)
        self.send("quarantine", {
            "v": 1, "type": "Quarantined", "reason": reason[:1000], "source": "tasks-" + AGENT,
            "messageId": message["MessageId"],
            "receiveCount": int(message["Attributes"]["ApproximateReceiveCount"]), "body": message["Body"],
        }, "quarantine")


def read(body):
    """Reads a task, and raises an error for what can never be understood."""
    task = json.loads(body)
    if task["v"] != 1 or task["type"] != "Task":
        raise ValueError("want a task of version 1")
    if task["agent"] != AGENT:
        raise ValueError(f"a task for agent {task['agent']}, but here runs only {AGENT}")
    for name in ("job", "step", "attempt", "action", "input", "key", "timeoutMs", "exclusive", "replyTo"):
        task[name]
    return task


def work(task, locked_by):
    """Does what the task asks, and gives the reply."""
    reply = {"v": 1, "job": task["job"], "step": task["step"], "attempt": task["attempt"]}
    if locked_by:
        reply["lockedBy"] = locked_by
    try:
        action = ACTIONS.get(task["action"])
        if action is None:
            raise Final(f"agent {AGENT} has no action {task['action']!r}, only {', '.join(sorted(ACTIONS))}")
        output = action(task)
        if len(json.dumps(output)) > MAX_OUTPUT_BYTES:
            raise ValueError(f"the output is larger than {MAX_OUTPUT_BYTES} bytes")
        return {**reply, "type": "StepSucceeded", "output": output}
    except Final as err:
        error = {"message": str(err), "retryable": False, "applied": "no"}
    except Exception as err:  # whatever it is, whether it had its effect is not known
        error = {"message": f"{type(err).__name__}: {err}", "retryable": True, "applied": "unknown"}
    return {**reply, "type": "StepFailed", "error": error}


def parse_time(text):
    """Reads RFC 3339 in UTC as Unix milliseconds."""
    whole, _, fraction = text.removesuffix("Z").partition(".")
    seconds = calendar.timegm(time.strptime(whole, "%Y-%m-%dT%H:%M:%S"))
    return seconds * 1000 + int((fraction + "000")[:3])


def main():
    missing = [name for name in ("MAKEGOOD_TABLE", "MAKEGOOD_QUEUE_PREFIX") if not os.environ.get(name)]
    if missing:
        sys.exit("environment: missing: " + ", ".join(missing))
    agent = Agent(os.environ["MAKEGOOD_TABLE"], os.environ["MAKEGOOD_QUEUE_PREFIX"])

    def stop(*_):
        agent.running = False

    signal.signal(signal.SIGTERM, stop)
    agent.run()


if __name__ == "__main__":
    main()
