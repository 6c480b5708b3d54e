"""Where an agent gets its tasks, and says what became of them: over HTTP from an engine. makegood_agent.sqs is the other way."""

from __future__ import annotations

import http.client
import json
import logging
import socket
import ssl
import threading
import time
import urllib.parse
import uuid
from dataclasses import dataclass
from typing import Any, Dict, Iterator, List, Optional, Protocol, Tuple

from .errors import Failure, Final
from .payload import ALTERED, Again, Body, Ended, NoAnswer, Reference, Store
from .task import Newer, Task, encode

log = logging.getLogger("makegood_agent")

WAIT = 20
ANSWER_WITHIN = 30.0


@dataclass(frozen=True)
class Taken:
    """A task that is ours until expires."""

    task: Task
    locked_by: str
    """Empty for a shared task, which nobody claims."""
    started_at: str
    began: float
    """When its claim was made, or before, on the monotonic clock."""
    expires: float
    """When silence becomes failure, on the monotonic clock; heartbeats move it."""
    ticket: Any = None
    """What the door needs in order to be done with the task."""
    table: str = ""
    """The DynamoDB table that has the claim; empty where the door is an engine's."""


class Refused(Exception):
    """What was said can never be taken."""


class Door(Protocol):
    """What a Runner needs. Each method raises where it is not known what became of what was asked. One that carries large payloads
    has a payload.Store in payloads, too."""

    def take(self, agent: str, limit: int) -> List[Taken]:
        """Waits for tasks, claims them, and returns them; none where none came, or stop was called."""

    def heartbeat(self, taken: Taken, progress: Any) -> Tuple[str, float]:
        """Extends a claim. Returns "held", "withdrawn" or "over", and the seconds that are left, counted from the call."""

    def reply(self, taken: Taken, message: Dict[str, Any]) -> None:
        """Says what became of a task. It may be called again. Refused: it can never be taken."""

    def finish(self, taken: Taken) -> None:
        """Is done with a task, whether or not anything was said of it."""

    def stop(self) -> None:
        """Ends what waits in take, soon. It is called by another thread."""

    def last(self, agent: str, limit: int) -> List[Taken]:
        """Returns what was on its way when take was ended. It does not wait."""


class HTTPDoor:
    """The door of an engine: makegood dev --outside NAME, or engine.Options.Outside. token: what the engine asks this agent for."""

    def __init__(self, url: str, *, token: str = "", instance: str = "", wait: int = WAIT) -> None:
        at = urllib.parse.urlsplit(url)
        if at.scheme not in ("http", "https") or not at.hostname:
            raise ValueError(f"{url!r}: want the address of an engine, such as http://127.0.0.1:4777")
        self._at, self._path = at, at.path.rstrip("/")
        self._tls = ssl.create_default_context() if at.scheme == "https" else None
        self._shows = {"Authorization": "Bearer " + token} if token else {}
        self._instance = instance or "py-" + uuid.uuid4().hex[:12]
        self._wait = wait
        self._lock = threading.Lock()
        self._idle: List[http.client.HTTPConnection] = []
        self._polling: Optional[http.client.HTTPConnection] = None
        self._request: Optional[str] = None
        self._stopping = False
        self.payloads: Store = self

    def take(self, agent: str, limit: int) -> List[Taken]:
        # The same request again is given the same tasks: what it was given when the connection broke is not lost.
        self._request = self._request or uuid.uuid4().hex
        return self._take(agent, limit, self._wait)

    def last(self, agent: str, limit: int) -> List[Taken]:
        return self._take(agent, limit, 0) if self._request else []

    def _take(self, agent: str, limit: int, wait: int) -> List[Taken]:
        connection = self._connect(wait + ANSWER_WITHIN)
        try:
            connection.connect()
            with self._lock:
                if self._stopping and wait > 0:
                    return []
                self._polling = connection
            asked = time.monotonic()
            given = self._post(connection, f"/api/agents/{agent}/tasks",
                               {"instance": self._instance, "max": min(limit, 10), "wait": wait, "request": self._request})
        finally:
            with self._lock:
                self._polling = None
            connection.close()
        self._request = None
        # Our clock and the engine's are not compared: its answer left it no earlier than that.
        answered = asked + given["heldMs"] / 1000
        taken = []
        for one in given["tasks"]:
            try:
                task = Task.read(one["task"])
            except (Newer, ValueError) as err:
                # It ends in silence; those beside it are none the worse.
                log.error("a task cannot be read: %s", err)
                continue
            expires = answered + one["leftMs"] / 1000
            taken.append(Taken(task, one.get("lockedBy", ""), one["startedAt"], expires - task.timeout, expires))
        return taken

    def heartbeat(self, taken: Taken, progress: Any) -> Tuple[str, float]:
        body = {**taken.task.identity(), "lockedBy": taken.locked_by}
        if progress is not None:
            body["progress"] = progress
        said = self._ask(f"/api/agents/{taken.task.agent}/heartbeats", body, max(1.0, taken.task.timeout / 4))
        return said["status"], said.get("leftMs", 0) / 1000

    def reply(self, taken: Taken, message: Dict[str, Any]) -> None:
        self._ask(f"/api/agents/{taken.task.agent}/replies", message, ANSWER_WITHIN)

    def finish(self, taken: Taken) -> None:
        pass

    def open_payload(self, taken: Taken, reference: Reference, first: int, end: int) -> Body:
        asked = {"bytes": str(reference.bytes), **({"by": reference.by} if reference.by else {})}
        headers = self._about(taken)
        if first > 0 or end < reference.bytes:
            headers["Range"] = f"bytes={first}-{end - 1}"
        connection = self._connect(ANSWER_WITHIN)
        try:
            connection.request("GET", f"{self._place(taken)}/{reference.sha256}?{urllib.parse.urlencode(asked)}", headers=headers)
            response = connection.getresponse()
            if response.status not in (200, 206):
                raise _refused(response)
            _check_part(response, first, end, reference.bytes)
            body = _Body(connection, response)
            want = end - first if response.status == 206 else reference.bytes
            if response.length not in (None, want):
                raise Final(f"{ALTERED}: {response.length} bytes are there, want {want}")
            body.skip(first if response.status == 200 else 0)
            return body
        except BaseException:
            connection.close()
            raise

    def send_payload(self, taken: Taken, media_type: str, pieces: Iterator[bytes], length: Optional[int], again: Again) -> Any:
        connection = self._connect(ANSWER_WITHIN)
        try:
            connection.putrequest("PUT", self._place(taken))
            framed = {"Transfer-Encoding": "chunked"} if length is None else {"Content-Length": str(length)}
            for name, value in {**self._about(taken), "Content-Type": media_type or "application/octet-stream", **framed}.items():
                connection.putheader(name, value)
            connection.endheaders()
            # What pieces raises ends the connection before the body has ended, and nothing is stored.
            broken = _send(connection, pieces, chunked=length is None)
            try:
                response = connection.getresponse()
            except (OSError, http.client.HTTPException) as err:
                raise broken or err
            if response.status != 201:
                raise _refused(response)
            return _stored(response.read(64 << 10))
        finally:
            connection.close()

    def _place(self, taken: Taken) -> str:
        return f"{self._path}/api/agents/{taken.task.agent}/payloads"

    def _about(self, taken: Taken) -> Dict[str, str]:
        """Says for which attempt it is. A header is no parameter: URLs are kept in logs; and it is ASCII."""
        holder = {**taken.task.identity(), **({"lockedBy": taken.locked_by} if taken.locked_by else {})}
        return {"Makegood-Holder": json.dumps(holder, separators=(",", ":")), **self._shows}

    def stop(self) -> None:
        with self._lock:
            self._stopping = True
            polling = self._polling
        if polling is not None and polling.sock is not None:
            try:
                polling.sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # it has ended by itself

    def _ask(self, path: str, body: Any, within: float) -> Any:
        """Asks on a connection that is kept. One that the other end has closed meanwhile is not kept."""
        with self._lock:
            connection = self._idle.pop() if self._idle else None
        if connection is not None:
            connection.timeout = min(within, ANSWER_WITHIN)
            if connection.sock is not None:
                connection.sock.settimeout(connection.timeout)
            try:
                return self._keep(connection, self._post(connection, path, body))
            except ConnectionError:
                # The other end closed it while it was idle; whatever is asked may be asked twice.
                connection.close()
            except BaseException:
                connection.close()
                raise
        connection = self._connect(min(within, ANSWER_WITHIN))
        try:
            return self._keep(connection, self._post(connection, path, body))
        except BaseException:
            connection.close()
            raise

    def _keep(self, connection: http.client.HTTPConnection, answer: Any) -> Any:
        with self._lock:
            self._idle.append(connection)
        return answer

    def _connect(self, timeout: float) -> http.client.HTTPConnection:
        assert self._at.hostname is not None
        if self._tls is not None:
            return http.client.HTTPSConnection(self._at.hostname, self._at.port, timeout=timeout, context=self._tls)
        return http.client.HTTPConnection(self._at.hostname, self._at.port, timeout=timeout)

    def _post(self, connection: http.client.HTTPConnection, path: str, body: Any) -> Any:
        connection.request("POST", self._path + path, encode(body), {"Content-Type": "application/json", **self._shows})
        response = connection.getresponse()
        text = response.read()
        if response.status == 200:
            return json.loads(text)
        why, _ = _problem(text)
        if response.status in (400, 413):
            raise Refused(f"{response.status}: {why}")
        raise NoAnswer(f"{response.status}: {why}")


def _problem(text: bytes) -> Tuple[str, bool]:
    """What is wrong, and whether the engine says that another attempt would be told the same."""
    try:
        said = json.loads(text)
        return str(said["error"]), said.get("final") is True
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return text[:200].decode("utf-8", "replace"), False


def _stored(text: bytes) -> Any:
    """Reads how it is said that a payload is stored. What is no JSON said somebody on the way, and not the engine."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as err:
        raise NoAnswer("201, with what is no reference: " + text[:200].decode("utf-8", "replace")) from err


def _check_part(response: http.client.HTTPResponse, first: int, end: int, size: int) -> None:
    """Refuses what was not asked for: of a part no hash would tell, and what is encoded has other bytes."""
    encoding = response.getheader("Content-Encoding", "identity")
    if encoding.lower() != "identity":
        raise Final(f"{ALTERED}: it comes with Content-Encoding {encoding[:80]}")
    part, want = response.getheader("Content-Range", "no range"), f"bytes {first}-{end - 1}/{size}"
    if response.status == 206 and part != want:
        raise Final(f"{ALTERED}: {part[:80]} came, want {want}")


def _refused(response: http.client.HTTPResponse) -> Exception:
    """The error that an answer about a payload stands for. What is final, and that the attempt is over, the engine says."""
    text, final = _problem(response.read(64 << 10))
    why = f"{response.status}: {text}"
    if final:
        return Final(why)
    if response.status == 409:
        return Ended(why)
    return NoAnswer(why) if response.status >= 500 or response.status == 429 else Failure(why)


def _send(connection: http.client.HTTPConnection, pieces: Iterator[bytes], chunked: bool) -> Optional[OSError]:
    """Sends a body. An error is why the other end takes no more of it: it may have said why."""
    for piece in pieces:
        try:
            connection.send(b"%x\r\n%b\r\n" % (len(piece), piece) if chunked else piece)
        except OSError as err:
            return err
    try:
        if chunked:
            connection.send(b"0\r\n\r\n")
    except OSError as err:
        return err
    return None


class _Body:
    """The body of an answer, on a connection of its own."""

    def __init__(self, connection: http.client.HTTPConnection, response: http.client.HTTPResponse) -> None:
        self._connection, self._response = connection, response

    def skip(self, n: int) -> None:
        """Passes by what was not asked for."""
        while n > 0:
            got = self.read(min(n, 64 << 10))
            if not got:
                raise ConnectionError("the connection ended")
            n -= len(got)

    def read(self, n: int) -> bytes:
        return self._response.read1(n)  # n is never more than there is

    def close(self) -> None:
        self._connection.close()
