"""One attempt being run: its time, its heartbeats, and when it must be silent."""

from __future__ import annotations

import contextlib
import io
import random
import threading
import time
from typing import TYPE_CHECKING, Any, Dict, Iterator, Optional

from .door import Refused
from .errors import Final, HeartbeatError, Over, Withdrawn
from .outage import Outage
from .payload import Payloads, Source
from .task import Task, encode

if TYPE_CHECKING:
    from .door import Door, Taken

MAX_MARGIN = 1.0
MAX_REST = 10.0
MAX_PROGRESS_BYTES = 512
# How many seconds are between two tries of a heartbeat that was not answered; they double from one to the other.
MIN_PAUSE, MAX_PAUSE = 0.1, 2.0


class Attempt:
    """What an action is told of the attempt that it is, and how it says that it goes on. It may be used by many threads."""

    def __init__(self, taken: "Taken", door: "Door", task: Task, outage: Optional[Outage] = None) -> None:
        self.task = task
        self._taken = taken
        self._door = door
        self._outage = outage or Outage()
        self._margin = min(MAX_MARGIN, task.timeout / 10)
        self._heartbeats = threading.Lock()  # one at a time, so that what is stored last is what is kept last
        self._changed = threading.Condition()
        self._expires = taken.expires
        self._extended = taken.began
        self._lapses = taken.began + task.total if task.total else None
        self._why: Optional[Exception] = None
        self._replaced = False
        self.payloads = Payloads(self, taken, getattr(door, "payloads", None))

    @property
    def locked_by(self) -> str:
        """Who holds the attempt, as its claim says; empty where nobody claims it. A write of your own may rest on it (docs/fence.md)."""
        return self._taken.locked_by

    @property
    def table(self) -> str:
        """The DynamoDB table that has the claim; empty where no table has it."""
        return self._taken.table

    def left(self) -> float:
        """How many seconds are left for work, as it stands now; never less than 0. The margin for the reply is taken off."""
        with self._changed:
            return 0.0 if self._why else max(0.0, self._expires - self._margin - time.monotonic())

    def ended(self) -> bool:
        """Whether the work must stop: it has run out of time, or nobody wants its result."""
        return self.left() <= 0

    def check(self) -> None:
        """Raises Withdrawn or Over if the work must stop."""
        with self._changed:
            if self._why:
                raise self._why
            if time.monotonic() >= self._expires - self._margin:
                raise Over("out of time")

    def wait(self, seconds: float) -> None:
        """Sleeps, but no longer than there is time for work; then it raises what check raises."""
        until = time.monotonic() + seconds
        while True:
            self.check()
            now = time.monotonic()
            if now >= until:
                return
            with self._changed:
                self._changed.wait(max(0.0, min(until, self._expires - self._margin) - now))

    def heartbeat(self, progress: Any = None) -> None:
        """Says that the work goes on: its time is counted anew from now. progress, at most 512 bytes of JSON, is shown to people.

        Work that may take longer than the step's timeout calls it at least twice in that time. Where the workflow says
        heartbeat, it may be called in a loop: most calls are not sent then. Withdrawn: nobody wants the result any more;
        there is still time to stop tidily, and a reply is heeded. Over: the attempt has ended; nothing is.
        HeartbeatError: it can never be taken, as where the step is not exclusive.

        While nobody answers, such as an engine that is started again, it is said again until it is taken or the time is up: work that
        returns from it is the attempt's still. Work that must not stand still meanwhile uses keep_alive.
        """
        self._claimed()
        if progress is not None and len(encode(progress)) > MAX_PROGRESS_BYTES:
            raise Final(f"progress: {len(encode(progress))} bytes as JSON, the limit is {MAX_PROGRESS_BYTES}")
        self._beat(progress, threading.Event())

    @contextlib.contextmanager
    def keep_alive(self) -> Iterator[None]:
        """Heartbeats in the background, three times in the time that the attempt may be silent, while a with block runs.

        It is for code that blocks and cannot call heartbeat, such as one call that takes 40 minutes, and keeps alive also what
        hangs: give the call a time limit of its own. It interrupts nothing: whether the result is still wanted say ended and check,
        and a reply that comes while there is time is heeded. HeartbeatError: the step is not exclusive.
        """
        self._claimed()
        done = threading.Event()
        name = threading.current_thread().name + " is kept alive"
        threading.Thread(target=self._keep_alive, args=(done,), name=name, daemon=True).start()
        try:
            yield
        finally:
            done.set()

    def _keep_alive(self, done: threading.Event) -> None:
        while not done.wait(self.task.timeout / 3):
            try:
                self._beat(None, done)
            except (Withdrawn, Over, HeartbeatError):
                return

    def _claimed(self) -> None:
        if self.task.shared:
            raise HeartbeatError("the step is not exclusive, so nobody claims its attempts, and their time cannot move")

    def _beat(self, progress: Any, done: threading.Event) -> None:
        """Says a heartbeat until it is taken, the time is up, or nobody needs it any more."""
        pause = MIN_PAUSE
        with self._heartbeats:
            while not done.is_set():
                self.check()
                asked = time.monotonic()
                if self.task.total and progress is None and asked - self._extended < min(MAX_REST, self.task.timeout / 4):
                    return
                try:
                    held, left = self._door.heartbeat(self._taken, progress)
                except Refused as err:
                    self.check()
                    raise HeartbeatError(str(err)) from err
                except Exception as err:
                    self._outage.failed(f"a heartbeat of {self.task.job}/{self.task.step}", err)
                    self.wait(pause * random.uniform(0.5, 1))
                    pause = min(pause * 2, MAX_PAUSE)
                    continue
                self._answered(asked, held, left)
                return self.check()

    def write_payload(self, source: Source, type: str = "") -> Dict[str, Any]:
        """Writes what is too large for an output, at most 100 MB: bytes, a binary file, or an iterable of bytes. It returns the reference,
        which the output can hold, anywhere; when it returns the bytes are durable. type says what they are, such as "application/pdf".

        Only pieces are held in memory. Bytes and a file that can seek are sent again where the line breaks; anything else can be sent
        only once. What a source of yours raises comes out of it. It does not move the attempt's time: what takes long calls heartbeat
        meanwhile. And it waits for its source: while that gives nothing, as an iterable or a pipe may, it does not notice that the time
        is up, so give a source that may stall a time limit of its own. Final: too much, no media type, or no right to.
        """
        return self.payloads.write(source, type)

    def open_payload(self, reference: Any, offset: int = 0, length: Optional[int] = None) -> io.BufferedReader:
        """Opens what a reference in the input refers to, as a binary file to read; a part of it with offset and length. Close it, or use
        with. A download that breaks is read on.

        Whoever has read all has read what was written: the last piece is given only if the hash of all is right. Of a part no hash
        tells. Final: it is not there, or is not what was written; to read on after that raises it again.
        """
        return self.payloads.open(reference, offset, length)

    def _answered(self, asked: float, held: str, left: float) -> None:
        with self._changed:
            if held == "over":
                self._over()
            else:
                expires = asked + left
                self._expires = expires if self._lapses is None else min(expires, self._lapses)
                self._extended = asked
            if held == "withdrawn":
                self._why = Withdrawn("nobody wants the result any more")
            self._changed.notify_all()

    def over(self) -> None:
        """Is called when the engine has said that the attempt has ended: nothing is said of it any more."""
        with self._changed:
            self._over()
            self._changed.notify_all()

    def _over(self) -> None:
        self._why, self._replaced = Over("another attempt has begun, or nobody wants this one"), True

    def stop(self, why: Exception) -> None:
        """Tells the action to stop; the runner does so when the process ends."""
        with self._changed:
            self._why = self._why or why
            self._changed.notify_all()

    def silent(self) -> bool:
        """Whether nothing may be said any more, not even an error: somebody else may have begun."""
        with self._changed:
            return self._replaced or time.monotonic() >= self._expires

    def last_word(self) -> float:
        """Until when the attempt may say something, on the monotonic clock."""
        with self._changed:
            return time.monotonic() if self._replaced else self._expires
