"""Write agents for Makegood in Python: the code that does the steps of jobs by calling a remote service, and undoes them.

    from makegood_agent import Agent, HTTPDoor, run

    payments = Agent("payments")

    @payments.do("charge")
    def charge(order, attempt):
        return bank.charge(order["amount"], idempotency_key=attempt.task.key, timeout=attempt.left())

    @payments.undo("refund")
    def refund(order, done, attempt):
        bank.refund(attempt.task.undo.forward_key, timeout=attempt.left())

    run(payments, HTTPDoor("http://127.0.0.1:4777"))

An action runs in a thread of its own, so several run at once. Before it runs, its attempt has been claimed, so one attempt runs at
most once; a step may take several, so an action passes task.key on to the remote service, which does the same thing once
for the same key. What is too large for a message is written and read by attempt.write_payload and attempt.open_payload. It needs nothing but the standard library; agents of a stack on AWS need boto3 (makegood_agent.sqs).
"""

from .actions import Agent
from .attempt import Attempt
from .door import Door, HTTPDoor, Taken
from .errors import Failure, Final, HeartbeatError, NotApplied, Over, RetryAfter, SlowDown, Wait, Withdrawn
from .runner import Runner, run
from .task import Task, Undo

__all__ = [
    "Agent", "Attempt", "Door", "Failure", "Final", "HTTPDoor", "HeartbeatError", "NotApplied", "Over", "RetryAfter", "SlowDown",
    "Runner", "Taken", "Task", "Undo", "Wait", "Withdrawn", "run",
]
