"""An agent that is not written in Go: payments, in plain Python with boto3.

It takes tasks from its queue, claims each attempt by one conditional write of its step's claim item, works,
and replies to the queue that the task names. docs/messages.md says what it must keep to. It calls nobody:
where charge() and refund() stand, a real one calls its payment service with task["key"].

    MAKEGOOD_TABLE=jobs MAKEGOOD_QUEUE_PREFIX=makegood- python3 agent.py

Region, credentials and endpoint come from the environment, as boto3 reads them.
"""

import calendar
import json
import os
import re
import signal
import sys
import time
import uuid

import boto3

AGENT = "payments"
TABLE, PREFIX = os.environ.get("MAKEGOOD_TABLE"), os.environ.get("MAKEGOOD_QUEUE_PREFIX")
MAX_OUTPUT_BYTES = 256 * 1024
# A message of a newer release is left: for a minute at first, 15 at most, and for 13 days in all.
LEAVE_FOR, MAX_LEAVE_FOR, MAX_LEFT = 60, 15 * 60, 13 * 86400
LEFT_SINCE = '{"leftSince":"'
INSTANCE = f"{AGENT}-py-{uuid.uuid4().hex[:8]}"

dynamodb, sqs = boto3.client("dynamodb"), boto3.client("sqs")


# The types of message that this release knows, and what the engine tells itself: no release sends those.
KNOWN = {"Task", "Submit", "Submitted", "StepSucceeded", "StepFailed", "DeadlinePassed", "Announcement", "AgentSilent", "Quarantined"}
INNER = {"AttemptClosed", "DispatchRefused", "Interrupted", "NotHeard", "Requested", "Told"}


class Final(Exception):
    """A failure that no other attempt would mend, and that surely had no effect."""


class Newer(Exception):
    """A message that a newer release wrote. It is neither done nor poison."""


def charge(task):
    """A step. The receipt is the same for every attempt, because the key is."""
    return {"receipt": "r-" + task["key"], "amount": task["input"]["amount"]}


def refund(task):
    """Its undo. It must work without an output: the outcome of the step may be unknown."""
    return {"refunded": task["undo"]["forwardKey"]}


ACTIONS = {"charge": charge, "refund": refund}


def log(what, **values):
    print(json.dumps({"msg": what, **values}), flush=True)


def claim(task, locked_by, now):
    """Takes the attempt, and says whether it did. What it raises leaves that open: the message must come again."""
    until, ends, me = parse_time(task["claimUntil"]), now + task["timeoutMs"], {"S": locked_by}
    key = {"PK": {"S": f"claim#{AGENT}#{task['job']}"}, "SK": {"S": f"{task['birth']}#{task['step']}"}}
    numbers = {":n": task["attempt"], ":at": now, ":by": ends, ":expires": max(until, ends) // 1000 + 2 * 86400 + 1}
    try:
        return now <= until and bool(dynamodb.update_item(
            TableName=TABLE, Key=key, ConditionExpression="attribute_not_exists(PK) OR Attempt < :n",
            UpdateExpression="SET Attempt=:n, LockedBy=:me, StartedAt=:at, CompleteBy=:by, ExpiresAt=:expires REMOVE Closed, Ends",
            ExpressionAttributeValues={":me": me, **{name: {"N": str(n)} for name, n in numbers.items()}},
            ReturnValuesOnConditionCheckFailure="ALL_OLD"))
    except dynamodb.exceptions.ConditionalCheckFailedException as err:
        old = err.response.get("Item") or dynamodb.get_item(TableName=TABLE, Key=key, ConsistentRead=True)["Item"]
        return old.get("LockedBy") == me and "Closed" not in old


class Agent:
    def __init__(self):
        self.urls = {}
        self.running = True

    def url(self, name):
        if name not in self.urls:
            self.urls[name] = sqs.get_queue_url(QueueName=PREFIX + name)["QueueUrl"]
        return self.urls[name]

    def run(self):
        tasks = self.url("tasks-" + AGENT)
        log("ready", agent=AGENT, instance=INSTANCE)
        while self.running:
            got = sqs.receive_message(
                QueueUrl=tasks, MaxNumberOfMessages=10, WaitTimeSeconds=5,
                MessageSystemAttributeNames=["ApproximateReceiveCount", "MessageGroupId"],
            )
            for message in got.get("Messages", []):
                try:
                    self.handle(message)
                except Exception as err:
                    # Whether the last write happened is not known. Not deleted, the message comes again;
                    # what was claimed here is then another's to end, when its CompleteBy has passed.
                    log("the message stays", messageId=message["MessageId"], error=f"{type(err).__name__}: {err}")
                    continue
                sqs.delete_message(QueueUrl=tasks, ReceiptHandle=message["ReceiptHandle"])

    def handle(self, message):
        """Does one task. When it returns, the message is dealt with."""
        try:
            task = read(message["Body"])
        except Newer as err:
            return self.leave(message, str(err))
        except (ValueError, KeyError, TypeError) as err:
            return self.quarantine(message, str(err))
        # The budget counts on the monotonic clock, from before the claim: the wall clock may jump.
        begun, now = time.monotonic(), int(time.time() * 1000)
        locked_by = ""
        if task["exclusive"]:
            locked_by = f"{INSTANCE}:{uuid.uuid4().hex}"
            if not claim(task, locked_by, now):
                return log("not mine", job=task["job"], step=task["step"], attempt=task["attempt"])
            budget = task["timeoutMs"] / 1000
        else:
            budget = (parse_time(task["completeBy"]) - now) / 1000
        reply = work(task, locked_by, now)
        if time.monotonic() - begun >= budget - min(1, budget / 10):
            # Somebody else may have begun: say nothing, not even an error.
            return log("too late", job=task["job"], step=task["step"], attempt=task["attempt"])
        self.send(task["replyTo"], reply, task["job"])
        log(reply["type"], job=task["job"], step=task["step"], attempt=task["attempt"])

    def send(self, queue, message, group):
        # json.dumps escapes all that is not ASCII, and so all that SQS refuses.
        sqs.send_message(QueueUrl=self.url(queue), MessageBody=json.dumps(message), MessageGroupId=group)

    def leave(self, message, why):
        """Sends a message again, delayed: returned to its queue it would be counted, and end among the dead letters."""
        body, since = left(message["Body"], int(time.time()))
        waited = int(time.time()) - since
        if waited > MAX_LEFT:
            return self.quarantine(message, f"no release that understands it came in {MAX_LEFT // 86400} days: {why}")
        log("left to a newer release", messageId=message["MessageId"], reason=why)
        group = message["Attributes"].get("MessageGroupId")
        sqs.send_message(
            QueueUrl=self.url("tasks-" + AGENT), MessageBody=body, DelaySeconds=min(max(waited, LEAVE_FOR), MAX_LEAVE_FOR),
            **({"MessageGroupId": group} if group else {}))

    def quarantine(self, message, reason):
        log("poison", messageId=message["MessageId"], reason=reason)
        self.send("quarantine", {
            "v": 1, "type": "Quarantined", "reason": reason[:1000], "source": "tasks-" + AGENT,
            "messageId": message["MessageId"],
            "receiveCount": int(message["Attributes"]["ApproximateReceiveCount"]), "body": message["Body"],
        }, "quarantine")


def read(body):
    """Reads a task. Fields that it does not know it ignores. Raises Newer, and other errors for what can never be understood."""
    task = json.loads(body)
    version, kind = task["v"], task["type"]
    if type(version) is not int or not 1 <= version <= 9999 or not re.fullmatch("[A-Z][A-Za-z]{0,62}", kind):
        raise ValueError("want a version and a type")
    if kind not in INNER and (version > 1 or kind not in KNOWN):
        raise Newer(f"version {version}, type {kind}")
    if kind != "Task":
        raise ValueError(f"want a Task, got {kind}")
    if task["agent"] != AGENT:
        raise ValueError(f"a task for agent {task['agent']}, but here runs only {AGENT}")
    for name in ("job", "step", "attempt", "action", "input", "key", "timeoutMs", "exclusive", "replyTo", "birth", "token"):
        task[name]
    parse_time(task["claimUntil"])
    return task


def left(body, now):
    """Gives a message as it is sent again, and since when it is left: said at its very front, where alone it counts."""
    body = body.lstrip(" \t\r\n")
    if body.startswith(LEFT_SINCE):
        text = body[len(LEFT_SINCE):].partition('"')[0]
        try:
            since = parse_time(text) // 1000
            if since <= now:
                return body, since
        except ValueError:
            pass
    return f'{LEFT_SINCE}{write_time(now * 1000)}",{body[1:]}', now


def work(task, locked_by, started):
    """Does what the task asks, and gives the reply, with the token that shows that it got the task."""
    reply = {"v": 1, "job": task["job"], "step": task["step"], "attempt": task["attempt"], "token": task["token"]}
    reply["startedAt"] = write_time(started)
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


def write_time(ms):
    """Writes Unix milliseconds as RFC 3339 in UTC."""
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(ms // 1000)) + f".{ms % 1000:03d}Z"


def main():
    missing = [name for name in ("MAKEGOOD_TABLE", "MAKEGOOD_QUEUE_PREFIX") if not os.environ.get(name)]
    if missing:
        sys.exit("environment: missing: " + ", ".join(missing))
    agent = Agent()

    def stop(*_):
        agent.running = False

    signal.signal(signal.SIGTERM, stop)
    agent.run()


if __name__ == "__main__":
    main()
