"""The nightly run of the travel agency, in Python: some 40 minutes of work, in one step.

    MAKEGOOD_URL=http://127.0.0.1:4800/makegood LEDGER_URL=http://127.0.0.1:4805/ledger python3 examples/travel/night/reconcile.py

NIGHT_SECONDS is how long it takes, 2400 unless it is set.
"""

import json
import os
import urllib.request
from collections import Counter
from contextlib import suppress

from makegood_agent import Agent, HeartbeatError, run

LEDGER = os.environ.get("LEDGER_URL", "http://127.0.0.1:4805/ledger")
SECONDS = float(os.environ.get("NIGHT_SECONDS", "2400"))
PARTS = 40

books = Agent("books")


@books.do("reconcile")
def reconcile(night, attempt):
    """Reads the ledger, part by part, and counts what each service has of each trip that was paid."""
    with urllib.request.urlopen(LEDGER, timeout=max(0.001, min(30, attempt.left()))) as answer:
        lines = [json.loads(line) for line in answer]
    for part in range(PARTS):
        # Twice in each part, so that a step that may be silent for a minute is never silent for longer than that.
        for _ in range(2):
            attempt.wait(SECONDS / PARTS / 2)
            with suppress(HeartbeatError):  # the engine is away; the work goes on, and the next heartbeat may reach it
                attempt.heartbeat({"part": part + 1, "of": PARTS})
    stands = Counter((line["Trip"], line["Service"]) for line in lines if not line["Canceled"])
    paid = [trip for trip, service in stands if service == "payments"]
    differ = [trip for trip in paid if any(stands[trip, s] != 1 for s in ("flights", "hotels", "cars", "payments"))]
    return {"day": night["day"], "paid": len(paid), "differ": differ}


if __name__ == "__main__":
    run(books)
