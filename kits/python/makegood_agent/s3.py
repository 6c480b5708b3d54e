"""The large payloads of a stack on AWS, in its bucket. It needs boto3.

Keys and rights are those of docs/decisions/0045-payloads-in-s3.md: an agent's role may write under its own name and incoming, and read
what agents and submitters wrote.
"""

from __future__ import annotations

import base64
import hashlib
import uuid
from typing import Any, Callable, Dict, Iterator, List, Optional, TypeVar

from botocore.exceptions import BotoCoreError, ClientError

from .door import Taken
from .errors import Final
from .payload import ALTERED, MARK, Again, Body, NoAnswer, Reference

# The smallest part that S3 takes: so much is in memory while a payload is written.
PART = 5 << 20
T = TypeVar("T")


class S3Payloads:
    """A payload.Store in a bucket. where is BUCKET/STACK, as MAKEGOOD_PAYLOADS and the output Payloads of a stack say it."""

    def __init__(self, where: str, client: Any) -> None:
        self._bucket, _, self._prefix = where.partition("/")
        if not self._bucket or not self._prefix or "/" in self._prefix:
            raise ValueError(f"{where!r} is not where payloads are: want BUCKET/STACK")
        self._s3 = client

    def open_payload(self, taken: Taken, reference: Reference, first: int, end: int) -> Body:
        part = {"Range": f"bytes={first}-{end - 1}"} if first > 0 or end < reference.bytes else {}
        got = _meaning(lambda: self._s3.get_object(
            Bucket=self._bucket, Key=self._key(taken.task.job, reference.by, reference.sha256), **part))
        # Of a part the store says which it is, and of how many bytes.
        has, want = f"bytes 0-{got['ContentLength'] - 1}/{got['ContentLength']}", f"bytes {first}-{end - 1}/{reference.bytes}"
        if part:
            has = str(got.get("ContentRange", "no range"))
        if has != want:
            got["Body"].close()
            raise Final(f"{ALTERED}: {has} came, want {want}")
        return _Body(got["Body"])

    def send_payload(self, taken: Taken, media_type: str, pieces: Iterator[bytes], length: Optional[int], again: Again) -> Any:
        digest, parts = hashlib.sha256(), _parts(pieces)
        part = next(parts)
        after = next(parts, None)
        if after is None:
            digest.update(part)
            key = self._key(taken.task.job, taken.task.agent, digest.hexdigest())
            again(lambda: _meaning(lambda: self._s3.put_object(Bucket=self._bucket, Key=key, Body=part, ChecksumSHA256=_checksum(digest))))
            size = len(part)
        else:
            size = self._send_parts(taken, digest, _chain(part, after, parts), again)
        said = {"sha256": digest.hexdigest(), "bytes": size, "by": taken.task.agent}
        return {MARK: {**said, **({"type": media_type} if media_type else {})}}

    def _key(self, job: str, by: str, sha256: str) -> str:
        return f"{self._prefix}/{'agent/' + by if by else 'submitter'}/{job}/{sha256}"

    def _send_parts(self, taken: Taken, digest: Any, parts: Iterator[bytes], again: Again) -> int:
        """Writes what is longer than a part under a key that nobody reads. Only what is whole gets its name, and the store hashes it."""
        scratch = f"{self._prefix}/incoming/agent/{taken.task.agent}/{uuid.uuid4().hex}"
        at = {"Bucket": self._bucket, "Key": scratch}
        upload = again(lambda: _meaning(lambda: self._s3.create_multipart_upload(**at)))["UploadId"]
        sent: List[Dict[str, Any]] = []
        size = 0
        try:
            for part in parts:
                number = len(sent) + 1
                done = again(lambda: _meaning(lambda: self._s3.upload_part(**at, UploadId=upload, PartNumber=number, Body=part)))
                sent.append({"PartNumber": number, **{name: done[name] for name in ("ETag", "ChecksumCRC32") if name in done}})
                digest.update(part)
                size += len(part)
            # Asked once: the next time there may be no such upload, because it is complete.
            _meaning(lambda: self._s3.complete_multipart_upload(**at, UploadId=upload, MultipartUpload={"Parts": sent}))
        except BaseException:
            _quietly(lambda: self._s3.abort_multipart_upload(**at, UploadId=upload))
            raise
        try:
            key = self._key(taken.task.job, taken.task.agent, digest.hexdigest())
            again(lambda: self._name(scratch, key, digest))
        finally:
            _quietly(lambda: self._s3.delete_object(**at))
        return size

    def _name(self, scratch: str, key: str, digest: Any) -> None:
        # Without that directive S3 refuses some copies, and keeps what somebody said of the original.
        copied = _meaning(lambda: self._s3.copy_object(
            Bucket=self._bucket, Key=key, CopySource={"Bucket": self._bucket, "Key": scratch}, MetadataDirective="REPLACE", ChecksumAlgorithm="SHA256"))
        result = copied.get("CopyObjectResult", {})
        hashed = result.get("ChecksumSHA256")
        if hashed and "-" not in hashed and result.get("ChecksumType") != "COMPOSITE" and hashed != _checksum(digest):
            raise NoAnswer("the store has hashed other bytes than were sent")


class _Body:
    """What the store gives. However it breaks, it is a line that broke."""

    def __init__(self, body: Any) -> None:
        self._body = body

    def read(self, n: int) -> bytes:
        try:
            got: bytes = self._body.read(n)
            return got
        except Exception as err:
            raise ConnectionError(str(err)) from err

    def close(self) -> None:
        self._body.close()


def _parts(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Pieces as parts: all but the last are as large as a part must be. There is always one."""
    held, none = bytearray(), True
    for piece in pieces:
        held += piece
        while len(held) >= PART:
            yield bytes(held[:PART])
            del held[:PART]
            none = False
    if held or none:
        yield bytes(held)


def _chain(first: bytes, second: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    yield second
    yield from rest


def _checksum(digest: Any) -> str:
    return base64.b64encode(digest.digest()).decode("ascii")


def _meaning(do: Callable[[], T]) -> T:
    """Says what a store refused with. What there is no word for may be tried again."""
    try:
        return do()
    except ClientError as err:
        status, code = err.response["ResponseMetadata"].get("HTTPStatusCode"), err.response["Error"].get("Code")
        if status == 404 and code not in ("NoSuchBucket", "NoSuchUpload"):
            raise Final(f"the payload is not there, for this job and by this writer: {err}") from err
        if status == 403 and code != "RequestTimeTooSkewed":
            raise Final(f"access to the payload store is denied: {err}") from err
        raise NoAnswer(str(err)) from err
    except BotoCoreError as err:
        raise NoAnswer(f"{type(err).__name__}: {err}") from err


def _quietly(do: Callable[[], Any]) -> None:
    """Takes back what was begun. What stays, the lifecycle of the bucket takes."""
    try:
        do()
    except (BotoCoreError, ClientError):
        pass
