"""Says that nobody answers: in one line for a short outage, and in one a minute for a long one."""

from __future__ import annotations

import logging
import threading
import time
from typing import Optional

log = logging.getLogger("makegood_agent")

# How many seconds are between two lines. What fails in between is tried again silently.
EVERY = 60.0


class Outage:
    """Is told of all that failed and is tried again. It may be used by many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._said: Optional[float] = None

    def failed(self, what: str, err: BaseException) -> None:
        """Writes a line, unless one was written within the last minute."""
        now = time.monotonic()
        with self._lock:
            if self._said is not None and now - self._said < EVERY:
                return
            self._said = now
        log.warning("no answer to %s, asked again: %s: %s", what, type(err).__name__, err)
