"""Tasks, as they come on the wire (docs/messages.md)."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from typing import Any, Dict, List, Optional, Tuple

from .errors import Final

MAX_PAYLOAD_BYTES = 256 * 1024
MAX_REASON_BYTES = 1024

# The types of message that this kit knows, and what the engine tells itself: no release sends those.
_KNOWN = {"Task", "SecretTask", "Submit", "Submitted", "StepSucceeded", "StepFailed", "StepWaiting", "StepCompleted",
          "WaitExtended", "DeadlinePassed", "Announcement", "AgentSilent", "Quarantined"}
_INNER = {"AttemptClosed", "DispatchRefused", "Interrupted", "NotHeard", "Requested", "Told"}

# What JSON may hold raw, but UTF-8 cannot say (half a pair of surrogates) or a queue refuses.
_ESCAPED = re.compile("[\ud800-\udfff\ufffe\uffff]")


class Newer(Exception):
    """A message that a newer release wrote. It is neither done nor poison."""


@dataclass(frozen=True)
class Undo:
    """What an undo is told of the step that it undoes."""

    forward_key: str
    """The idempotency key of the step. The remote is asked to refuse it from now on."""
    outcome: str
    """"done" or "unknown"."""
    output: Any
    """The step's output; None when the outcome is unknown."""
    repeats: int = 0
    """How often the step was begun again after a success (repeat), each time under a key of its own."""

    @property
    def keys(self) -> List[str]:
        """The idempotency keys under which the step may have had an effect, the newest first: forward_key is the last."""
        return [f"{self.forward_key}/{n}" for n in range(self.repeats + 1, 1, -1)] + [self.forward_key]


@dataclass(frozen=True)
class Task:
    """One attempt of a step."""

    job: str
    workflow: str
    step: str
    round: int
    attempt: int
    agent: str
    action: str
    input: Any
    key: str
    """The idempotency key, the same over all attempts: pass it on to the remote service."""
    timeout: float
    """How many seconds silence may last: until the claim, or the last heartbeat, is that old."""
    total: Optional[float]
    """How many seconds the attempt may take in all, where its step heartbeats."""
    shared: bool
    """Nobody claims it: it may run twice."""
    undo: Optional[Undo]
    completion: str
    """The completion token: whoever holds it may complete this step; see Wait. Empty where the engine gives none."""
    token: str
    """What the reply must carry. Nobody but the kit needs it."""
    reply_to: str
    birth: str
    claim_until: datetime
    complete_by: Optional[datetime]
    secrets: Tuple[Dict[str, Any], ...] = ()
    batch: Optional[Tuple[int, ...]] = None
    """The places of the items that the task is for, where it is a batch of items of a map: input is the list of their inputs. items has
    a task for each, and the runner does one after the other."""
    traceparent: str = ""
    """The span of this attempt, as W3C's header of that name: what is begun under it belongs there. Empty where there is none."""

    @staticmethod
    def read(message: Any) -> "Task":
        """Reads a task, and ignores the fields that it does not know. Newer; ValueError for what can never be understood."""
        if not isinstance(message, dict):
            raise ValueError("want an object")
        version, kind = message.get("v"), message.get("type")
        if type(version) is not int or not 1 <= version <= 9999 or not re.fullmatch("[A-Z][A-Za-z]{0,62}", str(kind)):
            raise ValueError("want a version and a type")
        if kind not in _INNER and (version > 1 or kind not in _KNOWN):
            raise Newer(f"version {version}, type {kind}")
        if kind not in ("Task", "SecretTask"):
            raise ValueError(f"want a task, got {kind}")
        try:
            return _read(message)
        except (KeyError, TypeError, AttributeError) as err:
            raise ValueError(f"a task without what it must have: {type(err).__name__} {err}") from err

    def items(self) -> "List[Task]":
        """The task of each item of a batch, with a key of its own, the same over all attempts; of another task itself alone."""
        if self.batch is None:
            return [self]
        if not isinstance(self.input, list) or len(self.input) != len(self.batch):
            raise Final(f"the input of a batch of {len(self.batch)} items is no list of so many", not_applied=True)
        done = {a["item"]: a.get("output") for a in (self.undo.output or [])} if self.undo else {}

        def item(place: int, given: Any) -> "Task":
            undo = self.undo
            if undo:
                undo = Undo(f"{undo.forward_key}/{place}", "done" if place in done else "unknown", done.get(place))
            return replace(self, batch=None, input=given, key=f"{self.key}/{place}", undo=undo)

        return [item(place, given) for place, given in zip(self.batch, self.input)]

    def identity(self) -> Dict[str, Any]:
        return {"job": self.job, "step": self.step, "attempt": self.attempt, "token": self.token}


def _read(m: Dict[str, Any]) -> Task:
    undo = m.get("undo")
    timeout = m["timeoutMs"] / 1000
    if timeout <= 0:
        raise ValueError(f"timeoutMs {m['timeoutMs']}")
    return Task(
        job=_text(m, "job"), workflow=str(m.get("workflow", "")), step=_text(m, "step"), round=int(m["round"]), attempt=int(m["attempt"]),
        agent=_text(m, "agent"), action=_text(m, "action"), input=m.get("input"), key=_text(m, "key"), timeout=timeout,
        total=m["totalMs"] / 1000 if m.get("totalMs") else None, shared=not m["exclusive"],
        undo=Undo(undo["forwardKey"], undo["outcome"], undo.get("output"), int(undo.get("repeats", 0))) if undo else None,
        completion=str(m.get("completion", "")), token=_text(m, "token"), reply_to=_text(m, "replyTo"), birth=_text(m, "birth"),
        claim_until=parse_time(m["claimUntil"]), complete_by=parse_time(m["completeBy"]) if m.get("completeBy") else None,
        secrets=tuple(m.get("secrets") or ()), batch=tuple(m["batch"]) if m.get("batch") else None, traceparent=str(m.get("traceparent") or ""),
    )


def _text(m: Dict[str, Any], name: str) -> str:
    value = m[name]
    if not isinstance(value, str) or not value:
        raise ValueError(f"{name}: want a text")
    return value


def parse_time(text: str) -> datetime:
    """Reads RFC 3339, to the millisecond."""
    match = re.fullmatch(r"(\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d)(\.\d+)?([Zz]|[+-]\d\d:\d\d)", text)
    if not match:
        raise ValueError(f"{text[:40]!r} is not a time as in RFC 3339")
    whole, fraction, zone = match.groups()
    return datetime.fromisoformat(whole.upper() + ((fraction or ".0") + "000")[:4] + ("+00:00" if zone in "Zz" else zone))


def write_time(at: datetime) -> str:
    """Writes RFC 3339 in UTC, to the millisecond."""
    return at.astimezone(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def from_millis(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, timezone.utc)


def to_millis(at: datetime) -> int:
    return round(at.timestamp() * 1000)


def clip(text: str, end: str = "") -> str:
    """Shortens a text to what is kept of an error, at a character's edge; end stands behind it, whole."""
    data, limit = text.encode("utf-8", "replace"), MAX_REASON_BYTES - len(end.encode("utf-8", "replace"))
    if len(data) <= limit:
        return data.decode("utf-8") + end
    return data[: limit - 3].decode("utf-8", "ignore") + "..." + end


def encode(message: Any) -> bytes:
    """Writes JSON in UTF-8, as it is sent: limits count what is sent, and of one character an escape would make six bytes or twelve."""
    text = json.dumps(message, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return _ESCAPED.sub(lambda found: f"\\u{ord(found[0]):04x}", text).encode("utf-8")
