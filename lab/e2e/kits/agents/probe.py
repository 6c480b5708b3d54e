"""The agent of the conformance suite, in Python. Its twins in Go and TypeScript do the same."""

import hashlib
import json
import os
import tempfile
import time
import urllib.request
from datetime import datetime

from makegood_agent import Agent, Final, Failure, HeartbeatError, SlowDown, Wait, Withdrawn, run

probe = Agent("probe")


@probe.do("echo")
def echo(given, attempt):
    return given


@probe.do("info")
def info(given, attempt):
    task = attempt.task
    return {"job": task.job, "workflow": task.workflow, "step": task.step, "round": task.round, "attempt": task.attempt, "key": task.key,
            "completion": task.completion, "shared": task.shared, "traceparent": task.traceparent}


@probe.do("fail")
def fail(given, attempt):
    after = given.get("retryAfterMs")
    raise Failure(given["message"], final=given.get("final", False), not_applied=given.get("notApplied", False),
                  retry_after=after / 1000 if after else None, kind=given.get("kind", ""))


@probe.do("slowDown")
def slow_down(given, attempt):
    if attempt.task.attempt <= given["times"]:
        raise SlowDown(given["message"], given["ms"] / 1000, kind="busy")
    return "taken"


@probe.do("crash")
def crash(given, attempt):
    raise RuntimeError("it broke")


class Declined(KeyError):
    """What a program raises on purpose, although Python's own are mistakes."""


@probe.do("err")
def err(given, attempt):
    """Fails as programs do, and as what they call does."""
    how = given["how"]
    if how == "none":
        nothing = None
        return nothing["name"]
    if how == "name":
        return nosuch  # noqa: F821
    if how == "deep":
        return deep(given)
    if how == "library":
        return json.dumps(given, nosuch=1)
    if how == "long":
        raise TypeError("ü" * 2000)
    if how == "declined":
        raise Declined("no such account")
    if how == "no JSON":
        return json.loads("<html>")
    return urllib.request.urlopen("http://127.0.0.1:1").read()  # nobody answers


def deep(given):
    return deep(given)


@probe.do("sleep")
def sleep(given, attempt):
    attempt.wait(given["ms"] / 1000)
    return "slept"


@probe.do("deaf")
def deaf(given, attempt):
    time.sleep(given["ms"] / 1000)
    return "slept"


@probe.do("heartbeat")
def heartbeat(given, attempt):
    failed = 0
    for n in range(given["times"]):
        attempt.wait(given["ms"] / 1000)
        try:
            attempt.heartbeat()
        except HeartbeatError:
            failed += 1
        except Withdrawn:
            raise Failure("withdrawn", not_applied=True) from None
    return {"failed": failed}


@probe.do("block")
def block(given, attempt):
    with attempt.keep_alive():
        time.sleep(given["ms"] / 1000)
    return "blocked"


@probe.do("hold")
def hold(given, attempt):
    """Works until there is a file, and heartbeats, or is kept alive."""
    open(given["begun"], "w").close()
    if given["alive"]:
        with attempt.keep_alive():
            while not os.path.exists(given["until"]):
                time.sleep(0.05)
        return "kept alive"
    while not os.path.exists(given["until"]):
        attempt.heartbeat()
        attempt.wait(0.05)
    return "heartbeats"


@probe.do("report")
def report(given, attempt):
    attempt.heartbeat(given["progress"])
    return "reported"


@probe.do("later")
def later(given, attempt):
    raise Wait(datetime.fromisoformat(given["deadline"].replace("Z", "+00:00")))


@probe.do("large")
def large(given, attempt):
    return given.get("of", "x") * given["bytes"]


@probe.do("unsayable")
def unsayable(given, attempt):
    return object()


@probe.do("parsed", parse=lambda given: given["must"])
def parsed(given, attempt):
    return given


@probe.undo("unecho")
def unecho(given, done, attempt):
    undo = attempt.task.undo
    if given.get("quiet"):
        return
    if given.get("keys"):
        raise Final(json.dumps(undo.keys, separators=(",", ":")))
    raise Final(json.dumps({"done": done, "forwardKey": undo.forward_key, "outcome": undo.outcome}, sort_keys=True, separators=(",", ":")))


LINE = b"0123456789abcde\n"


def lines(n):
    """Bytes that can be read once, in pieces: those of a line, again and again."""
    piece = LINE * 4096
    while n > 0:
        yield piece[:n]
        n -= len(piece)


def broken(n):
    """Bytes, and then an error that is the source's own."""
    yield from lines(n)
    raise OSError("the source broke")


@probe.do("press")
def press(given, attempt):
    kind = given.get("from")
    source = (broken if kind == "broken" else lines)(given["bytes"])
    if kind == "memory":
        source = b"".join(source)
    if kind != "file":
        return {"report": attempt.write_payload(source, given.get("type", ""))}
    with tempfile.TemporaryFile() as file:
        file.writelines(source)
        file.seek(0)
        return {"report": attempt.write_payload(file, given.get("type", ""))}


@probe.do("pressLater")
def press_later(given, attempt):
    attempt.wait(given["ms"] / 1000)
    return press(given, attempt)


@probe.do("inspect")
def inspect(given, attempt):
    digest, n = hashlib.sha256(), 0
    with attempt.open_payload(given["report"], given.get("offset", 0), given.get("length")) as report:
        while piece := report.read(65536):
            digest.update(piece)
            n += len(piece)
    return {"bytes": n, "sha256": digest.hexdigest()}


@probe.do("passOn", references=True)
def pass_on(given, attempt):
    return given


said = {name: int(os.environ[name]) for name in ("CONCURRENCY", "PATIENCE_MS")}
run(probe, **({"concurrency": said["CONCURRENCY"]} if said["CONCURRENCY"] else {}), patience=said["PATIENCE_MS"] / 1000)
