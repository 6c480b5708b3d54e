"""The door of a stack on AWS: tasks from the agent's queue, claims in its table, replies to the events queue. It needs boto3.

docs/messages.md says what an agent must keep to, and which rights its role needs. Region, credentials and endpoint are what
boto3 finds.
"""

from __future__ import annotations

import json
import logging
import time
import uuid
from datetime import datetime, timezone
from typing import Any, Dict, List, Optional, Tuple

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

from .door import Refused, Taken
from .runner import MAX_CONCURRENCY
from .s3 import S3Payloads
from .task import Newer, Task, encode, from_millis, parse_time, to_millis, write_time

log = logging.getLogger("makegood_agent")

# How long a receive waits: so long stop may take, too.
WAIT = 5
# A message of a newer release is left: for a minute at first, 15 at most, and for 13 days in all.
LEAVE_FOR, MAX_LEAVE_FOR, MAX_LEFT = 60, 15 * 60, 13 * 86400
LEFT_SINCE = '{"leftSince":"'
# What SQS says of a message that it will never take.
REFUSALS = {"InvalidMessageContents", "InvalidParameterValue", "AWS.SimpleQueueService.BatchRequestTooLong", "MessageTooLong"}
KEEP_CLAIM = 2 * 86400
MAX_CLAIM_MS = 30 * 86_400_000


class SQSDoor:
    """The queues have prefix before their names, the table is that of the stack. payloads is where its large payloads are, as
    BUCKET/STACK; without, there are none. Clients of boto3 may be given."""

    def __init__(
        self, table: str, prefix: str, *, payloads: str = "", instance: str = "", wait: int = WAIT, sqs: Optional[Any] = None,
        dynamodb: Optional[Any] = None, s3: Optional[Any] = None,
    ) -> None:
        self._table, self._prefix, self._wait = table, prefix, wait
        self._instance = instance or "py-" + uuid.uuid4().hex[:12]
        # As many attempts as run at once may each say something.
        many = Config(max_pool_connections=MAX_CONCURRENCY)
        self._sqs, self._dynamodb = sqs or boto3.client("sqs", config=many), dynamodb or boto3.client("dynamodb", config=many)
        self.payloads = S3Payloads(payloads, s3 or boto3.client("s3")) if payloads else None
        self._urls: Dict[str, str] = {}
        self._stopping = False

    def take(self, agent: str, limit: int) -> List[Taken]:
        queue = "tasks-" + agent
        got = self._sqs.receive_message(
            QueueUrl=self._url(queue), MaxNumberOfMessages=min(limit, 10), WaitTimeSeconds=self._wait,
            MessageSystemAttributeNames=["ApproximateReceiveCount", "MessageGroupId"])
        taken = []
        for message in got.get("Messages", []):
            try:
                one = self._claim(agent, message)
            except Exception as err:
                # Whether the last write happened is not known. Not deleted, the message comes again; what was claimed
                # is then another's to end, when its CompleteBy has passed.
                log.warning("message %s stays: %s: %s", message["MessageId"], type(err).__name__, err)
                continue
            if one is None:
                self._sqs.delete_message(QueueUrl=self._url(queue), ReceiptHandle=message["ReceiptHandle"])
            else:
                taken.append(one)
        return taken

    def last(self, agent: str, limit: int) -> List[Taken]:
        return []

    def heartbeat(self, taken: Taken, progress: Any) -> Tuple[str, float]:
        task, now = taken.task, to_millis(datetime.now(timezone.utc))
        started = to_millis(parse_time(taken.started_at))
        by = min(now + round(task.timeout * 1000), started + (round(task.total * 1000) if task.total else MAX_CLAIM_MS))
        try:
            self._extend(taken, by, "Attempt = :n AND LockedBy = :me AND attribute_not_exists(Closed)"
                                    " AND attribute_not_exists(Ends) AND CompleteBy <= :by", progress, now)
            return "held", (by - now) / 1000
        except self._dynamodb.exceptions.ConditionalCheckFailedException as err:
            old = err.response.get("Item") or self._read(task)
        if old.get("LockedBy") != {"S": taken.locked_by} or old.get("Attempt") != {"N": str(task.attempt)} or "Closed" in old:
            return "over", 0.0
        stored = int(old["CompleteBy"]["N"])
        if "Ends" not in old:
            return "held", (stored - now) / 1000  # it stands later already
        ends = min(by, int(old["Ends"]["N"]))
        if ends > stored:
            try:
                self._extend(taken, ends, "Attempt = :n AND LockedBy = :me AND attribute_not_exists(Closed) AND CompleteBy <= :by")
                stored = ends
            except self._dynamodb.exceptions.ConditionalCheckFailedException:
                return "over", 0.0
        return "withdrawn", (stored - now) / 1000

    def reply(self, taken: Taken, message: Dict[str, Any]) -> None:
        try:
            self._send(taken.task.reply_to, message, taken.task.job)
        except ClientError as err:
            if err.response["Error"]["Code"] in REFUSALS:
                raise Refused(str(err)) from err
            raise

    def finish(self, taken: Taken) -> None:
        self._sqs.delete_message(QueueUrl=self._url("tasks-" + taken.task.agent), ReceiptHandle=taken.ticket)

    def stop(self) -> None:
        self._stopping = True

    def _url(self, name: str) -> str:
        # A queue's name in a message is the one inside the deployment.
        if name not in self._urls:
            self._urls[name] = self._sqs.get_queue_url(QueueName=self._prefix + name)["QueueUrl"]
        return self._urls[name]

    def _claim(self, agent: str, message: Dict[str, Any]) -> Optional[Taken]:
        """Claims the attempt of a message. None: it is dealt with, or another's. What it raises leaves that open."""
        try:
            task = Task.read(json.loads(message["Body"]))
            if task.agent != agent:
                raise ValueError(f"a task for agent {task.agent}, but here runs only {agent}")
        except Newer as err:
            self._leave(agent, message, str(err))
            return None
        except ValueError as err:
            self._quarantine(agent, message, str(err))
            return None
        # The budget counts on the monotonic clock, from before the claim: the wall clock may jump.
        began, at = time.monotonic(), datetime.now(timezone.utc)
        if task.shared:
            assert task.complete_by is not None
            budget = min(task.timeout, (task.complete_by - at).total_seconds())
            return Taken(task, "", write_time(at), began, began + budget, message["ReceiptHandle"]) if budget > 0 else None
        locked_by = f"{self._instance}:{uuid.uuid4().hex}"
        if not self._write_claim(task, locked_by, to_millis(at)):
            return None
        return Taken(task, locked_by, write_time(at), began, began + task.timeout, message["ReceiptHandle"], self._table)

    def _write_claim(self, task: Task, locked_by: str, now: int) -> bool:
        """Takes the attempt, and says whether it did: one conditional write of its step's claim item."""
        until, ends, me = to_millis(task.claim_until), now + round(task.timeout * 1000), {"S": locked_by}
        if now > until:
            return False
        numbers = {":n": task.attempt, ":at": now, ":by": ends, ":expires": max(until, ends) // 1000 + KEEP_CLAIM + 1}
        try:
            self._dynamodb.update_item(
                TableName=self._table, Key=_key(task), ConditionExpression="attribute_not_exists(PK) OR Attempt < :n",
                UpdateExpression="SET Attempt=:n, LockedBy=:me, StartedAt=:at, CompleteBy=:by, ExpiresAt=:expires REMOVE Closed, Ends",
                ExpressionAttributeValues={":me": me, **{name: {"N": str(n)} for name, n in numbers.items()}},
                ReturnValuesOnConditionCheckFailure="ALL_OLD")
            return True
        except self._dynamodb.exceptions.ConditionalCheckFailedException as err:
            # Our own write, if boto3 tried again and met it. An item that did not come back says nothing: it is read.
            old = err.response.get("Item") or self._read(task)
            return old.get("LockedBy") == me and old.get("Attempt") == {"N": str(task.attempt)} and "Closed" not in old

    def _extend(self, taken: Taken, by: int, condition: str, progress: Any = None, now: int = 0) -> None:
        task = taken.task
        said = {} if progress is None else {":progress": {"M": {"Value": {"S": encode(progress).decode("utf-8")}, "At": {"N": str(now)}}}}
        self._dynamodb.update_item(
            TableName=self._table, Key=_key(task), ConditionExpression=condition,
            UpdateExpression="SET CompleteBy = :by, ExpiresAt = :expires" + (", Progress = :progress" if said else ""),
            ExpressionAttributeValues={
                **said,
                ":n": {"N": str(task.attempt)}, ":me": {"S": taken.locked_by}, ":by": {"N": str(by)},
                ":expires": {"N": str(max(to_millis(task.claim_until), by) // 1000 + KEEP_CLAIM + 1)}},
            ReturnValuesOnConditionCheckFailure="ALL_OLD")

    def _read(self, task: Task) -> Dict[str, Any]:
        item: Dict[str, Any] = self._dynamodb.get_item(TableName=self._table, Key=_key(task), ConsistentRead=True)["Item"]
        return item

    def _send(self, queue: str, message: Dict[str, Any], group: str) -> None:
        self._sqs.send_message(QueueUrl=self._url(queue), MessageBody=encode(message).decode("utf-8"), MessageGroupId=group)

    def _leave(self, agent: str, message: Dict[str, Any], why: str) -> None:
        """Sends a message again, delayed: returned to its queue it would be counted, and end among the dead letters."""
        now = int(time.time())
        body, since = left(message["Body"], now)
        if now - since > MAX_LEFT:
            return self._quarantine(agent, message, f"no release that understands it came in {MAX_LEFT // 86400} days: {why}")
        log.info("message %s is left to a newer release: %s", message["MessageId"], why)
        group = message.get("Attributes", {}).get("MessageGroupId")
        self._sqs.send_message(
            QueueUrl=self._url("tasks-" + agent), MessageBody=body, DelaySeconds=min(max(now - since, LEAVE_FOR), MAX_LEAVE_FOR),
            **({"MessageGroupId": group} if group else {}))

    def _quarantine(self, agent: str, message: Dict[str, Any], reason: str) -> None:
        # The reason may quote the message, so it is in quarantine beside it, and not in the log.
        log.warning("message %s is poison, and goes into quarantine", message["MessageId"])
        self._send("quarantine", {
            "v": 1, "type": "Quarantined", "reason": reason[:1000], "source": "tasks-" + agent, "messageId": message["MessageId"],
            "receiveCount": int(message["Attributes"]["ApproximateReceiveCount"]), "body": message["Body"],
        }, "quarantine")


def _key(task: Task) -> Dict[str, Any]:
    return {"PK": {"S": f"claim#{task.agent}#{task.job}"}, "SK": {"S": f"{task.birth}#{task.step}"}}


def left(body: str, now: int) -> Tuple[str, int]:
    """Gives a message as it is sent again, and since when it is left: said at its very front, where alone it counts."""
    body = body.lstrip(" \t\r\n")
    if body.startswith(LEFT_SINCE):
        try:
            since = int(parse_time(body[len(LEFT_SINCE):].partition('"')[0]).timestamp())
            if since <= now:
                return body, since
        except ValueError:
            pass
    return f'{LEFT_SINCE}{write_time(from_millis(now * 1000))}",{body[1:]}', now
