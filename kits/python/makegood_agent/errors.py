"""What an action raises in order to say more than that it failed."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Optional


class Failure(Exception):
    """A failure, and what is known of it. Any other exception is retryable, and leaves it unknown whether there was an effect. One that Python
    raises for a mistake in the program (TypeError, KeyError, ...) is of the kind panic, too, for which a job stops instead of being undone.

    final: another attempt would fail too, so the step is given up. not_applied: the attempt surely had no effect, so that
    there is nothing to undo after it; when in doubt do not say it. retry_after: the remote asked to be left alone for so many
    seconds, which is kept to up to the step's retry.max. kind: what kind of error it is, such as "card_declined", for
    onError of the workflow; what is no such name is no kind.
    """

    def __init__(
        self, message: str, *, final: bool = False, not_applied: bool = False, retry_after: Optional[float] = None, kind: str = "",
    ) -> None:
        super().__init__(message)
        self.final = final
        self.not_applied = not_applied
        self.retry_after = retry_after
        self.kind = kind if re.fullmatch("[a-z][a-z0-9_]{0,62}", kind) else ""


class Final(Failure):
    """Another attempt would fail too. Final("no such account", not_applied=True): and this one had no effect."""

    def __init__(self, message: str, *, not_applied: bool = False, kind: str = "") -> None:
        super().__init__(message, final=True, not_applied=not_applied, kind=kind)


class NotApplied(Failure):
    """The attempt surely had no effect; another may succeed."""

    def __init__(self, message: str, *, retry_after: Optional[float] = None, kind: str = "") -> None:
        super().__init__(message, not_applied=True, retry_after=retry_after, kind=kind)


class RetryAfter(Failure):
    """The remote asked to be left alone for so many seconds."""

    def __init__(self, message: str, seconds: float, *, kind: str = "") -> None:
        super().__init__(message, retry_after=seconds, kind=kind)


class SlowDown(RetryAfter):
    """The remote asked for so many seconds without any attempt of this agent. This one is not counted."""


class Wait(Exception):
    """Raised by an action whose step somebody or something else will complete: a person, a bank, a webhook.

    The step waits, without a claim and without compute, until whoever was given attempt.task.completion completes it, or
    until the deadline, an aware datetime. Hand the token over before raising this.
    """

    def __init__(self, deadline: datetime) -> None:
        if deadline.tzinfo is None:
            raise ValueError("Wait: the deadline must say its time zone")
        super().__init__(f"the step waits until {deadline.isoformat()}")
        self.deadline = deadline


class Withdrawn(Exception):
    """Nobody wants the result any more, because the job is to be undone. What is replied until CompleteBy is still heeded."""


class Over(Exception):
    """The attempt has run out of time, or was replaced. Another may have begun, and nothing that this one says is heeded."""


class HeartbeatError(Exception):
    """A heartbeat can never be taken: the step is not exclusive, or the engine refuses it. The deadline stays where it was."""
