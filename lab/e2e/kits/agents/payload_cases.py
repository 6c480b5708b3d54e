"""What the kit for Python does with payloads where no engine on a wire can see it. TestThePythonKitAlone runs it."""

import hashlib
import http.client
import io
import sys
import time
import types
import unittest

try:
    from botocore.exceptions import ClientError
except ImportError:  # the kit's store in S3 needs no more of it than its errors
    class ClientError(Exception):
        def __init__(self, response, operation):
            super().__init__(f"{operation}: {response['Error']['Code']}")
            self.response = response

    errors = types.ModuleType("botocore.exceptions")
    errors.ClientError, errors.BotoCoreError = ClientError, type("BotoCoreError", (Exception,), {})
    sys.modules["botocore"], sys.modules["botocore.exceptions"] = types.ModuleType("botocore"), errors

from makegood_agent import Final
from makegood_agent.attempt import Attempt
from makegood_agent.door import Taken
from makegood_agent.s3 import PART, S3Payloads
from makegood_agent.task import Task, encode


def attempt_at(store):
    task = Task.read({
        "v": 1, "type": "Task", "job": "j", "step": "s", "round": 1, "attempt": 1, "agent": "press", "action": "a", "key": "k", "timeoutMs": 60_000,
        "exclusive": True, "token": "t", "replyTo": "events", "birth": "b", "claimUntil": "2026-12-04T10:00:00Z"})
    began = time.monotonic()
    door = types.SimpleNamespace(payloads=store)
    return Attempt(Taken(task, "me", "2026-11-20T10:00:00Z", began, began + task.timeout), door, task)


def reference_to(data, **rest):
    return {"$payload": {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data), **rest}}


class Kept:
    """A store of one payload, which counts how often it was asked."""

    def __init__(self, data=b""):
        self.data, self.asked = data, 0

    def open_payload(self, taken, reference, first, end):
        self.asked += 1
        return io.BytesIO(self.data[first:end])

    def send_payload(self, taken, media_type, pieces, length, again):
        self.asked += 1
        self.data = b"".join(pieces)
        return reference_to(self.data, by="press")


class Bucket:
    """A bucket whose answers fail as often as is said of a request."""

    def __init__(self, **fails):
        self.fails, self.parts, self.objects, self.asked = fails, {}, {}, []

    def _answer(self, name):
        self.asked.append(name)
        if self.fails.get(name, 0) > 0:
            self.fails[name] -= 1
            raise ClientError({"Error": {"Code": "SlowDown"}, "ResponseMetadata": {"HTTPStatusCode": 503}}, name)

    def put_object(self, Bucket, Key, Body, **rest):
        self._answer("put")
        self.objects[Key] = Body

    def create_multipart_upload(self, **at):
        self._answer("create")
        return {"UploadId": "u"}

    def upload_part(self, Bucket, Key, UploadId, PartNumber, Body):
        self._answer(f"part{PartNumber}")
        self.parts[PartNumber] = Body
        return {"ETag": str(PartNumber)}

    def complete_multipart_upload(self, Bucket, Key, UploadId, MultipartUpload):
        self._answer("complete")
        self.objects[Key] = b"".join(self.parts[part["PartNumber"]] for part in MultipartUpload["Parts"])

    def abort_multipart_upload(self, **at):
        self._answer("abort")

    def copy_object(self, Bucket, Key, CopySource, **rest):
        self._answer("copy")
        self.objects[Key] = self.objects[CopySource["Key"]]
        return {}

    def delete_object(self, Bucket, Key):
        del self.objects[Key]

    def get_object(self, Bucket, Key, Range=""):
        return {"Body": io.BytesIO(b"0123456"), "ContentLength": 7, "ContentRange": "bytes 0-6/10"}


class Reading(unittest.TestCase):
    def test_whoever_reads_on_in_what_was_altered_is_told_again(self):
        for read in (lambda r: r.read(), lambda r: r.read(10), lambda r: r.read1(10), lambda r: r.readline(), lambda r: list(r)):
            with self.subTest(read=read), attempt_at(Kept(b"altered")).open_payload(reference_to(b"written")) as report:
                for _ in range(3):
                    self.assertRaisesRegex(Final, "its hash is another", read, report)

    def test_a_part_of_a_bucket_is_the_one_that_was_asked_for(self):
        reference = reference_to(b"0123456789")
        attempt = attempt_at(S3Payloads("bucket/stack", Bucket()))
        self.assertRaisesRegex(Final, "bytes 0-6/10 came, want bytes 1-7/10", attempt.open_payload, reference, 1, 7)
        with attempt.open_payload(reference, 0, 7) as part:
            self.assertEqual(part.read(), b"0123456")


class Writing(unittest.TestCase):
    def test_what_the_source_raises_comes_out_as_it_is(self):
        def pieces(error):
            yield b"some"
            raise error

        class File(io.BytesIO):
            def read(self, n=-1):
                raise theirs

        for theirs in (OSError("no such disk"), http.client.HTTPException("of another line"), KeyError("k"), Final("theirs")):
            for source in (pieces(theirs), File(b"some")):
                store = Kept()
                with self.subTest(theirs=theirs, source=source), self.assertRaises(type(theirs)) as raised:
                    attempt_at(store).write_payload(source)
                self.assertIs(raised.exception, theirs)
                self.assertEqual(store.asked, 1)

    def test_a_media_type_is_checked_before_anything_is_asked(self):
        for wrong in ("text/é", "a/\x7f", "text/plain\r\nX: y", "\t", "pdf", "/", "a/b c", "a/" + "b" * 99, "é" * 51, None):
            store = Kept()
            with self.subTest(wrong=wrong):
                self.assertRaisesRegex(Final, "^type ", attempt_at(store).write_payload, b"1", wrong)
                self.assertEqual(store.asked, 0)
        for right in ("", "application/pdf", 'text/plain; charset="utf-8"', "a/" + "b" * 98, "application/vnd.a.b+json;v=1"):
            attempt_at(Kept()).write_payload(b"1", right)

    def test_what_is_in_memory_is_sent_again_to_a_bucket_that_is_busy(self):
        once = (piece for piece in [b"a" * 1000, b"b"])
        bucket = Bucket(put=2)
        written = attempt_at(S3Payloads("bucket/stack", bucket)).write_payload(once)
        self.assertEqual(bucket.asked, ["put"] * 3)
        self.assertEqual(written, reference_to(b"a" * 1000 + b"b", by="press"))

        data = bytes(range(256)) * (PART // 256) + b"rest"
        bucket = Bucket(create=1, part1=1, part2=2, copy=1)
        written = attempt_at(S3Payloads("bucket/stack", bucket)).write_payload(data[at:at + 70_000] for at in range(0, len(data), 70_000))
        self.assertEqual(bucket.asked, ["create"] * 2 + ["part1"] * 2 + ["part2"] * 3 + ["complete"] + ["copy"] * 2)
        self.assertEqual(written, reference_to(data, by="press"))
        self.assertEqual(list(bucket.objects.values()), [data])


class Encoding(unittest.TestCase):
    def test_what_utf8_or_a_queue_cannot_carry_is_escaped_and_nothing_else(self):
        self.assertEqual(encode(["é\u2028😀\n", "\ud800", "\ufffe\uffff"]), '["é\u2028😀\\n","\\ud800","\\ufffe\\uffff"]'.encode())


if __name__ == "__main__":
    unittest.main()
