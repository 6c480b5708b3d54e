"""Large payloads: bytes that are too large for a message, written once and passed on by reference (docs/large-payloads.md)."""

from __future__ import annotations

import hashlib
import http.client
import io
import json
import os
import random
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO, Callable, Dict, Iterable, Iterator, Optional, Protocol, TypeVar, Union

from .errors import Failure, Final, NotApplied, Over

if TYPE_CHECKING:
    from .attempt import Attempt
    from .door import Taken

MARK = "$payload"
JSON = "application/json"
MAX_LARGE_PAYLOAD_BYTES = 100 << 20
MAX_DECODED_PAYLOAD_BYTES = 16 << 20
MAX_PAYLOAD_TYPE_BYTES = 100
# What Go takes for one, in printable ASCII: a header can hold nothing else.
MEDIA_TYPE = re.compile(r"""[!#-'*+.0-9A-Z^-z|~-]+/[!#-'*+./0-9A-Z^-z|~-]+(;[ -~]*)?""")
PIECE = 64 << 10
# How often in a row bytes are asked for, or sent, before the attempt fails, and the longest wait between.
TRIES, MAX_PAUSE = 8, 2.0
ALTERED = "the bytes of the payload are not those written"

Source = Union[bytes, bytearray, memoryview, BinaryIO, Iterable[bytes]]
"""What a payload is written from. Only what can be read again, bytes or a file, is sent again where the line broke."""
T = TypeVar("T")


class NoAnswer(Exception):
    """The engine cannot say now what became of what was asked: ask again."""


class Unreadable(Final):
    """A payload that is no JSON, or too much of it to be read into memory."""

    def __init__(self, message: str) -> None:
        super().__init__(message, not_applied=True)


class _Theirs(Exception):
    """What the source of a payload raised, so that nobody takes it for the line's."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


class Ended(Over):
    """Who keeps the claim says that the attempt has ended. That its time is up is another thing: of that a failure may still be said."""


@dataclass(frozen=True)
class Reference:
    """What stands for the bytes in JSON, as an object with the one member $payload."""

    sha256: str
    bytes: int
    type: str = ""
    by: str = ""

    @staticmethod
    def read(value: Any) -> "Reference":
        """Reads one; ValueError says what is wrong with it."""
        inner = value.get(MARK) if isinstance(value, dict) and len(value) == 1 else None
        if not isinstance(inner, dict):
            raise ValueError(f"want a reference to a payload, an object with the one member {MARK}")
        sha256, size = inner.get("sha256"), inner.get("bytes")
        if not isinstance(sha256, str) or not re.fullmatch("[0-9a-f]{64}", sha256):
            raise ValueError(f"{MARK}: sha256 is {str(sha256)[:80]!r}: want 64 hex digits in lower case")
        if type(size) is not int or not 0 <= size <= MAX_LARGE_PAYLOAD_BYTES:
            raise ValueError(f"{MARK}: bytes is {str(size)[:80]}: want 0 to {MAX_LARGE_PAYLOAD_BYTES}")
        return Reference(sha256, size, str(inner.get("type", "")), str(inner.get("by", "")))


class Body(Protocol):
    """The bytes of a payload from some place on, as one request has them. They may end too early."""

    def read(self, n: int) -> bytes: ...

    def close(self) -> None: ...


class Again(Protocol):
    """Does something that may be done again until it is done, within the attempt's time. Failure: it could not be."""

    def __call__(self, do: Callable[[], T]) -> T: ...


class Store(Protocol):
    """What a door has that carries payloads. Each method asks once, but for what it asks by again. Final: no other attempt would do
    better. Ended: the attempt has. NoAnswer, OSError and HTTPException: it is asked again."""

    def open_payload(self, taken: "Taken", reference: Reference, first: int, end: int) -> Body:
        """Opens the bytes from first to end, which is the one behind the last."""

    def send_payload(self, taken: "Taken", media_type: str, pieces: Iterator[bytes], length: Optional[int], again: Again) -> Any:
        """Sends bytes, and returns their reference. length: how many there will be, if that is known. again: for what is in memory, as
        pieces may never come again. What pieces raises it raises, and nothing is stored then."""


class Payloads:
    """Writes and reads the payloads of one attempt's job."""

    def __init__(self, attempt: "Attempt", taken: "Taken", store: Optional[Store]) -> None:
        self._attempt, self._taken, self._at = attempt, taken, store

    def can(self) -> bool:
        """Whether the door carries any."""
        return self._at is not None

    def _store(self) -> Store:
        if self._at is None:
            raise Final("there is no payload store where this agent runs: its door carries none (docs/large-payloads.md)")
        return self._at

    def open(self, value: Any, offset: int, length: Optional[int]) -> io.BufferedReader:
        store = self._store()
        try:
            reference = Reference.read(value)
        except ValueError as err:
            raise Final(str(err)) from err
        end = reference.bytes if length is None else offset + length
        if not 0 <= offset <= end <= reference.bytes:
            raise Final(f"bytes {offset} to {end} of a payload of {reference.bytes}")

        def ask(first: int) -> Body:
            return self.again(lambda: store.open_payload(self._taken, reference, first, end))

        return io.BufferedReader(_Reader(self._attempt, reference, offset, end, ask), PIECE)

    def write(self, source: Source, media_type: str) -> Dict[str, Any]:
        store = self._store()
        _check_type(media_type)
        pieces = _pieces_of(source)
        counted = _Counted(self._attempt, iter(()))

        def send() -> Dict[str, Any]:
            nonlocal counted
            counted = _Counted(self._attempt, _theirs(pieces.again))
            answer: Dict[str, Any] = store.send_payload(self._taken, media_type, iter(counted), pieces.length, self.again)
            try:
                reference = Reference.read(answer)
            except ValueError as err:
                raise NoAnswer(f"it is said to be stored, but not as what: {err}") from err
            counted.check(reference, pieces.length)
            return answer

        try:
            return self.again(send, lambda: pieces.rereadable or not counted.begun)
        except _Theirs as err:
            theirs = err.error
        raise theirs

    def again(self, do: Callable[[], T], may: Callable[[], bool] = lambda: True) -> T:
        """Does something until it is done, fails for good, has failed so often, or may not be done again."""
        pause = 0.1
        for left in range(TRIES, 0, -1):
            self._attempt.check()
            try:
                return do()
            except Ended:
                self._attempt.over()
                raise
            except (NoAnswer, OSError, http.client.HTTPException) as err:
                if left == 1 or not may():
                    raise Failure(f"the payload could not be carried: {type(err).__name__}: {err}") from err
            self._attempt.wait(pause * random.uniform(0.5, 1))
            pause = min(2 * pause, MAX_PAUSE)
        raise AssertionError("no tries")

    def value(self, what: str, value: Any) -> Any:
        """The JSON that a value is, where it is nothing but a reference to such; any other is itself."""
        try:
            reference = Reference.read(value)
        except ValueError:
            return value
        if reference.type != JSON:
            raise Unreadable(f"{what}: is a payload of type {reference.type!r}, and the action takes JSON: declare it with references=True")
        if reference.bytes > MAX_DECODED_PAYLOAD_BYTES:
            raise Unreadable(f"{what}: is a payload of {reference.bytes} bytes, and at most {MAX_DECODED_PAYLOAD_BYTES} are read into memory: "
                             "declare the action with references=True")
        try:
            with self.open(value, 0, None) as reader:
                text = reader.read()
        except Final as err:
            raise Final(f"{what}: {err}", not_applied=True) from err
        except Failure as err:
            raise NotApplied(f"{what}: {err}") from err
        try:
            return _read_json(text)
        except (ValueError, RecursionError) as err:
            raise Unreadable(f"{what}: is no JSON that can be read: {err}") from err

    def done(self, output: Any) -> Any:
        """The output of a step as its undo is told it: the value, as above, or the reference where there is no such value. An undo that
        did not run for that would leave what it is to undo."""
        try:
            return self.value("the step's output", output)
        except Unreadable:
            return output


def _read_json(text: bytes) -> Any:
    """Reads JSON as Go does: in UTF-8, with no byte order mark and no NaN; nothing at all is null."""
    if not text.strip():
        return None
    return json.loads(text.decode("utf-8"), parse_constant=_refuse_constant)


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number of JSON")


def _check_type(text: Any) -> None:
    """Refuses, as the engine does, what is no media type: in a header it could be another header, and in an output refused too late."""
    if isinstance(text, str) and len(text.encode("utf-8", "replace")) > MAX_PAYLOAD_TYPE_BYTES:
        raise Final(f"type has {len(text.encode('utf-8', 'replace'))} bytes, the limit is {MAX_PAYLOAD_TYPE_BYTES}")
    if text != "" and not (isinstance(text, str) and MEDIA_TYPE.fullmatch(text)):
        raise Final(f"type is {text!r}: want a media type in printable ASCII, such as application/pdf")


class _Reader(io.RawIOBase):
    """Reads bytes on from where a download broke off. What was read to its end is what was written, or it raises."""

    def __init__(self, attempt: "Attempt", reference: Reference, first: int, end: int, ask: Callable[[int], Body]) -> None:
        super().__init__()
        self._attempt, self._reference, self._ask = attempt, reference, ask
        self._at, self._end = first, end
        # Of a part no hash tells whether it is what was written.
        self._hash = hashlib.sha256() if end - first == reference.bytes else None
        self._broken = 0
        self._altered: Optional[Final] = None
        self._body: Optional[Body] = None
        if first < end or not reference.bytes:
            self._body = ask(first)
        if first == end:
            self._check()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if self._altered is not None:
            raise self._altered  # an end would say that all is well
        room = min(len(buffer), PIECE, self._end - self._at)
        while room > 0:
            self._attempt.check()
            got, why = self._read(room)
            if got:
                buffer[: len(got)] = got
                self._took(got)
                return len(got)
            self._break(why)
        return 0

    def _read(self, room: int) -> "tuple[bytes, Exception]":
        assert self._body is not None
        try:
            return self._body.read(room), ConnectionError("the connection ended")
        except (OSError, http.client.HTTPException) as err:
            return b"", err

    def _break(self, why: Exception) -> None:
        """Goes on elsewhere, unless it broke off too often."""
        self._broken += 1
        if self._broken >= TRIES:
            raise Failure(f"the payload broke off after {self._at} of {self._reference.bytes} bytes: {why}") from why
        if self._body is not None:
            self._body.close()
        self._body = self._ask(self._at)

    def _took(self, got: bytes) -> None:
        self._broken = 0
        self._at += len(got)
        if self._hash is not None:
            self._hash.update(got)
        if self._at == self._end:
            self._check()

    def _check(self) -> None:
        if self._hash is not None and self._hash.hexdigest() != self._reference.sha256:
            self._altered = Final(f"{ALTERED}: its hash is another")
            raise self._altered

    def close(self) -> None:
        if not self.closed and self._body is not None:
            self._body.close()
        super().close()


@dataclass(frozen=True)
class _Pieces:
    """What is written, in pieces; again begins at its beginning."""

    again: Callable[[], Iterator[Any]]
    length: Optional[int]
    rereadable: bool


def _pieces_of(source: Any) -> _Pieces:
    if isinstance(source, str):
        raise Final("a payload is written from bytes, and this is text: encode it")
    if isinstance(source, (bytes, bytearray, memoryview)):
        whole = memoryview(source).cast("B")
        return _limited(lambda: (whole[at:at + PIECE] for at in range(0, len(whole), PIECE)), len(whole), True)
    if hasattr(source, "read"):
        seekable = getattr(source, "seekable", None)
        if seekable is None or not seekable():
            return _Pieces(lambda: iter(lambda: source.read(PIECE), b""), None, False)
        start: int = source.tell()
        length: int = source.seek(0, os.SEEK_END) - start
        return _limited(lambda: _file(source, start, length), length, True)
    if isinstance(source, Iterable):
        return _Pieces(lambda: iter(source), None, False)
    raise Final(f"a payload is written from bytes, a file or an iterable of bytes, and this is {type(source).__name__}")


def _limited(again: Callable[[], Iterator[Any]], length: int, rereadable: bool) -> _Pieces:
    if length > MAX_LARGE_PAYLOAD_BYTES:
        raise Final(f"there are {length} bytes, the limit of a payload is {MAX_LARGE_PAYLOAD_BYTES}")
    return _Pieces(again, length, rereadable)


def _file(source: Any, start: int, length: int) -> Iterator[Any]:
    """The bytes of a file that it had when it was measured."""
    source.seek(start)
    while length > 0:
        piece = source.read(min(PIECE, length))
        if not piece:
            raise Failure("the file has changed while it was written: it is shorter")
        length -= len(piece)
        yield piece


def _theirs(again: Callable[[], Iterator[Any]]) -> Iterator[Any]:
    try:
        yield from again()
    except Exception as err:
        raise _Theirs(err) from err


class _Counted:
    """Pieces that are sent: counted, hashed, and none after the time of the attempt."""

    def __init__(self, attempt: "Attempt", pieces: Iterator[Any]) -> None:
        self._attempt, self._pieces = attempt, pieces
        self._hash, self._bytes = hashlib.sha256(), 0
        self.begun = False

    def __iter__(self) -> Iterator[bytes]:
        self.begun = True
        for piece in self._pieces:
            self._attempt.check()
            if not isinstance(piece, (bytes, bytearray, memoryview)):
                raise Final(f"a payload is written from bytes, and this is {type(piece).__name__}: open a file in binary mode")
            self._hash.update(piece)
            self._bytes += len(piece)
            if self._bytes > MAX_LARGE_PAYLOAD_BYTES:
                raise Final(f"there are more than {MAX_LARGE_PAYLOAD_BYTES} bytes, the limit of a payload")
            if piece:
                yield bytes(piece)

    def check(self, reference: Reference, length: Optional[int]) -> None:
        if reference.sha256 != self._hash.hexdigest() or reference.bytes != self._bytes or length not in (None, self._bytes):
            raise Final(f"{ALTERED}: {self._bytes} bytes were sent, and the reference is of {reference.bytes}, or of others")
