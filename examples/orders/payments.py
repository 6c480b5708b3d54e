"""The payments of the order sample, in Python: MAKEGOOD_URL is the engine, MAKEGOOD_SHOP the shop.

    makegood dev --outside payments --outside shipping
    MAKEGOOD_URL=http://127.0.0.1:4777 MAKEGOOD_SHOP=http://127.0.0.1:4790 python3 examples/orders/payments.py
"""

import json
import os
import urllib.error
import urllib.request

from makegood_agent import Agent, Failure, Final, run

SHOP = os.environ.get("MAKEGOOD_SHOP", "http://127.0.0.1:4790")

payments = Agent("payments")


def ask(path, order, attempt):
    """Makes exactly one request: trying again is Makegood's."""
    task = attempt.task
    headers = {"Content-Type": "application/json", "Idempotency-Key": task.key, "Makegood-Attempt": str(task.attempt)}
    if task.undo:
        headers.update({"Makegood-Forward-Key": task.undo.forward_key, "Makegood-Outcome": task.undo.outcome})
    request = urllib.request.Request(SHOP + path, json.dumps(order).encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=max(0.001, attempt.left())) as response:
            return json.load(response)
    except urllib.error.HTTPError as err:
        if err.code >= 500 or err.code == 429:
            raise Failure(f"{err.code}: {err.reason}") from err  # nobody knows whether it had its effect
        raise Final(f"{err.code}: {err.reason}", not_applied=True) from err


@payments.do("charge")
def charge(order, attempt):
    return ask("/payments/charge", order, attempt)


@payments.undo("refund")
def refund(order, done, attempt):
    # Whether it was done or nobody knows, the shop knows by the forward key.
    ask("/payments/refund", order, attempt)


if __name__ == "__main__":
    run(payments)
