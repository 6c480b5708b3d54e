"""Runs an agent: takes tasks, works, replies, and says nothing when it is too late."""

from __future__ import annotations

import dataclasses
import logging
import os
import random
import signal
import threading
import time
import traceback
from typing import Any, Dict, List, Optional, Set

from . import mistakes
from . import secrets as secret
from .actions import Agent
from .attempt import Attempt
from .door import Door, HTTPDoor, Refused, Taken
from .errors import Failure, Final, NotApplied, Over, SlowDown, Wait
from .outage import Outage
from .payload import JSON
from .task import MAX_PAYLOAD_BYTES, clip, encode, write_time

log = logging.getLogger("makegood_agent")

# How many attempts run at once where nothing is said, and how many may.
DEFAULT_CONCURRENCY = 64
MAX_CONCURRENCY = 1000
DEFAULT_PATIENCE = 25.0
# How long after it was told to stop an action that runs still is waited for, so that it may say why it stopped.
LAST_WORDS = 2.0


class Runner:
    """Runs one agent. concurrency is how many attempts run at once, 1 to 1000; patience how many seconds those that run may go on
    after stop. What does not stop then ends in silence, and is tried again elsewhere. secrets gives the value of a secret
    by its name, and raises KeyError where there is none; by default MAKEGOOD_SECRET_NAME of the environment.
    """

    def __init__(
        self, agent: Agent, door: Door, *, concurrency: int = DEFAULT_CONCURRENCY, patience: float = DEFAULT_PATIENCE,
        secrets: secret.Source = secret.from_environment,
    ) -> None:
        if not agent.actions():
            raise ValueError(f"agent {agent.name}: no actions")
        if not 1 <= concurrency <= MAX_CONCURRENCY:
            raise ValueError(f"concurrency {concurrency}: want 1 to {MAX_CONCURRENCY}")
        self.agent, self.door = agent, door
        self._concurrency, self._patience, self._secrets = concurrency, patience, secrets
        self._changed = threading.Condition()
        self._running: Set[Attempt] = set()
        self._stopping = False
        self._outage = Outage()

    def run(self) -> None:
        """Takes tasks until stop is called, and returns when nothing runs any more, or patience has run out."""
        log.info("ready: agent %s, up to %d attempts at once", self.agent.name, self._concurrency)
        pause = 0.0
        while self._free(pause):
            try:
                taken = self.door.take(self.agent.name, self._concurrency - len(self._running))
                pause = 0.0
            except Exception as err:
                if self._stopping:
                    break
                pause = min(max(0.1, pause * 2), 5.0)
                self._outage.failed("a request for tasks", err)
                continue
            self._begin(taken)
        try:
            self._begin(self.door.last(self.agent.name, self._concurrency))
        except Exception as err:
            log.warning("what was on its way at the end was lost: %s", err)
        self._drain()

    def stop(self) -> None:
        """Takes no more tasks, and lets run return when those that run are done."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        self.door.stop()

    def _free(self, pause: float) -> bool:
        """Waits until there is room for a task, and for about pause seconds; False: it was told to stop."""
        with self._changed:
            if pause:
                self._changed.wait_for(lambda: self._stopping, pause * random.uniform(0.5, 1))
            self._changed.wait_for(lambda: self._stopping or len(self._running) < self._concurrency)
            return not self._stopping

    def _begin(self, taken: List[Taken]) -> None:
        for one in taken:
            attempt = Attempt(one, self.door, one.task, self._outage)
            with self._changed:
                self._running.add(attempt)
            name = f"{one.task.job}/{one.task.step}#{one.task.attempt}"
            threading.Thread(target=self._run, args=(one, attempt), name=name, daemon=True).start()

    def _drain(self) -> None:
        with self._changed:
            self._changed.wait_for(lambda: not self._running, self._patience)
            stuck = list(self._running)
        for attempt in stuck:
            attempt.stop(Over("the process ends"))
        with self._changed:
            if not self._changed.wait_for(lambda: not self._running, LAST_WORDS if stuck else 0):
                log.error("%d attempts did not stop, and are given up", len(self._running))

    def _run(self, taken: Taken, attempt: Attempt) -> None:
        try:
            self._reply(taken, attempt, self._work(taken, attempt))
        except BaseException as err:  # a thread has nobody to tell
            log.error("%s: %s: %s", threading.current_thread().name, type(err).__name__, err)
        finally:
            with self._changed:
                self._running.discard(attempt)
                self._changed.notify_all()

    def _work(self, taken: Taken, attempt: Attempt) -> Dict[str, Any]:
        """Does the work, and returns what is to be replied."""
        hider = secret.Hider({})
        try:
            if attempt.left() <= 0:
                raise Failure("it took too long to get the task", not_applied=True)
            filled, hider = secret.fill(attempt.task, self._secrets)
            if attempt.task.secrets:
                attempt.task = dataclasses.replace(attempt.task, input=filled)
            try:
                output = self._handle(attempt, hider)
            except Exception as err:
                if not mistakes.mistaken(err):
                    raise
                stack = "".join(traceback.format_exception(type(err), err, err.__traceback__))
                log.error("%s: a mistake in the program: %s", threading.current_thread().name, hider.text(stack).rstrip())
                return _message(taken, "StepFailed", error=_error(err, attempt, hider, mistakes.KIND, mistakes.place(err)))
            return _message(taken, "StepSucceeded", output=_kept(hider.output(output), attempt))
        except Wait as wait:
            return _message(taken, "StepWaiting", deadline=write_time(wait.deadline))
        except BaseException as err:  # whatever it is, it is the failure of this attempt alone
            return _message(taken, "StepFailed", error=_error(err, attempt, hider))

    def _handle(self, attempt: Attempt, hider: secret.Hider) -> Any:
        """Calls the agent. For a batch it is called for each item, one after the other, and the output has an answer for each."""
        task = attempt.task
        if task.batch is None:
            return self.agent.handle(attempt)
        answers = []
        try:
            for place, item in zip(task.batch, task.items()):
                attempt.task = item
                answers.append({"item": place, **self._answer(attempt, hider)})
        finally:
            attempt.task = task
        return answers

    def _answer(self, attempt: Attempt, hider: secret.Hider) -> Dict[str, Any]:
        """Does one item of a batch. A mistake in the program is the failure of the whole attempt."""
        try:
            if attempt.ended():
                raise NotApplied("the attempt ended before the item began")
            return {"output": self.agent.handle(attempt)}
        except Wait:
            waits = Final("it would wait for another party, and items of a batch cannot: leave map.batch out")
            return {"error": _error(waits, attempt, hider)}
        except Exception as err:
            if mistakes.mistaken(err):
                raise
            return {"error": _error(err, attempt, hider)}

    def _reply(self, taken: Taken, attempt: Attempt, message: Dict[str, Any]) -> None:
        """Says what became of an attempt, for as long as anything may be said."""
        pause = 0.05
        while not attempt.silent():
            try:
                self.door.reply(taken, message)
                self.door.finish(taken)
                return
            except Refused as err:
                if message["type"] == "StepFailed":
                    log.error("%s: the reply is refused: %s", threading.current_thread().name, err)
                    return
                message = _message(taken, "StepFailed", error={
                    "message": clip(f"the reply cannot be sent: {err}"), "retryable": False, "applied": "unknown"})
            except Exception as err:
                self._outage.failed("the reply of " + threading.current_thread().name, err)
                time.sleep(max(0.0, min(pause * random.uniform(0.5, 1), attempt.last_word() - time.monotonic())))
                pause = min(pause * 2, 2.0)
        # Somebody else may have begun: not even an error is said.
        log.warning("%s: too late, nothing was said", threading.current_thread().name)
        self.door.finish(taken)


def _message(taken: Taken, kind: str, **rest: Any) -> Dict[str, Any]:
    message = {"v": 1, "type": kind, **taken.task.identity(), "startedAt": taken.started_at, **rest}
    if taken.locked_by:
        message["lockedBy"] = taken.locked_by
    return message


def _kept(output: Any, attempt: Attempt) -> Any:
    """The output as it is said: what is too large for a message is written as a payload. Why it cannot be taken is final, but the
    effect has happened."""
    try:
        text = encode(output)
    except (TypeError, ValueError, RecursionError) as err:
        raise Final(f"the output is not JSON: {err}") from err
    if len(text) <= MAX_PAYLOAD_BYTES:
        return output
    if not attempt.payloads.can():
        raise Final(f"the output has {len(text)} bytes, the limit is {MAX_PAYLOAD_BYTES}, and there is no payload store where this agent runs")
    try:
        return attempt.write_payload(text, JSON)
    except Failure as err:
        raise Failure(f"the output of {len(text)} bytes cannot be kept: {err}", final=err.final) from err


def _error(err: BaseException, attempt: Attempt, hider: secret.Hider, kind: str = "", place: str = "") -> Dict[str, Any]:
    """What is said of a failure. kind and place are those of a mistake."""
    known = err if isinstance(err, Failure) else None
    text = str(err) if known else f"{type(err).__name__}: {err}"
    if attempt.ended():
        text = "out of time: " + text
    said: Dict[str, Any] = {
        "message": clip(hider.text(text), place), "retryable": not (known and known.final),
        "applied": "no" if known and known.not_applied else "unknown",
    }
    kind = known.kind if known else kind
    if kind:
        said["kind"] = kind
    if known and known.retry_after:
        said["retryAfterMs"] = max(0, int(known.retry_after * 1000))
    if isinstance(known, SlowDown):
        said["slowDown"] = True
    return said


def door_from_environment() -> Door:
    """MAKEGOOD_URL (and MAKEGOOD_TOKEN): an engine. MAKEGOOD_TABLE and MAKEGOOD_QUEUE_PREFIX (and MAKEGOOD_PAYLOADS):
    a stack on AWS."""
    env = os.environ
    if env.get("MAKEGOOD_URL"):
        return HTTPDoor(env["MAKEGOOD_URL"], token=env.get("MAKEGOOD_TOKEN", ""))
    if env.get("MAKEGOOD_TABLE"):
        from .sqs import SQSDoor

        return SQSDoor(env["MAKEGOOD_TABLE"], env.get("MAKEGOOD_QUEUE_PREFIX", ""), payloads=env.get("MAKEGOOD_PAYLOADS", ""))
    raise ValueError("environment: want MAKEGOOD_URL, or MAKEGOOD_TABLE and MAKEGOOD_QUEUE_PREFIX")


def _show() -> None:
    """Writes what the kit says to standard error, where the program has not said where its log goes."""
    if not log.hasHandlers():
        shown = logging.StreamHandler()
        shown.setFormatter(logging.Formatter("makegood-agent: %(message)s"))
        log.addHandler(shown)
        log.setLevel(logging.INFO)


def run(
    agent: Agent, door: Optional[Door] = None, *, concurrency: int = DEFAULT_CONCURRENCY, patience: float = DEFAULT_PATIENCE,
    secrets: secret.Source = secret.from_environment,
) -> None:
    """Runs an agent until SIGTERM or SIGINT, then lets what runs end, for patience seconds. A second signal ends the process.

    Without a door the environment says which; see door_from_environment. It must be called by the main thread. Where logging is not set
    up, what the kit says (that it is ready, that nobody answers) goes to standard error; its logger is makegood_agent.
    """
    _show()
    runner = Runner(agent, door or door_from_environment(), concurrency=concurrency, patience=patience, secrets=secrets)
    # A handler may only write to a pipe: it interrupts whoever holds whatever lock.
    heard, said = os.pipe()
    signalled: List[int] = []

    def on_signal(number: int, _frame: Any) -> None:
        if signalled:
            os._exit(128 + number)
        signalled.append(number)
        os.write(said, b"s")

    before = {number: signal.signal(number, on_signal) for number in (signal.SIGTERM, signal.SIGINT)}

    def work() -> None:
        try:
            runner.run()
        finally:
            os.write(said, b"e")

    worker = threading.Thread(target=work, name="makegood-" + agent.name, daemon=True)
    worker.start()
    try:
        while os.read(heard, 1) == b"s":
            runner.stop()
        worker.join()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        os.close(heard)
        os.close(said)
