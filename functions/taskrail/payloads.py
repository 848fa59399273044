"""Payloads: inline in the item while small, in S3 when not.

A *stored text* is JSON text, or a pointer: ``s3:`` and a key. No JSON text starts like that. Every
object has a key of its own per task, run, attempt and write, so what a winner points to cannot be
overwritten by a loser; the pointer travels in the guarded write.
"""

from __future__ import annotations

import json
from typing import IO, TYPE_CHECKING, Any

from taskrail.errors import PayloadGone, StoreUnavailable, ToolError

if TYPE_CHECKING:
    from collections.abc import Callable

    from mypy_boto3_s3 import S3Client

    from taskrail.ids import Ids
    from taskrail.task import Task

SMALL = 4_096
"""Bytes up to which arguments, answers and step outcomes stay in the item."""
TOGETHER = 8 * SMALL
"""Bytes of a task's answers, and of its step outcomes, up to which more of them stay in the item: it takes 400 KB."""
RESULT = 32_768
"""Bytes up to which a result stays in the item."""
POINTER = "s3:"


class Payloads:
    """The payload bucket.

    Parameters
    ----------
    client
        Gives a boto3 S3 client; called at the first use only, since most requests need none.
    bucket
        Name of the bucket.
    ids
        Source of the keys' random part.
    """

    def __init__(self, client: Callable[[], S3Client], bucket: str, ids: Ids) -> None:
        self._make_client = client
        self._made: S3Client | None = None
        self._bucket = bucket
        self._ids = ids

    @property
    def _client(self) -> S3Client:
        if self._made is None:
            self._made = self._make_client()
        return self._made

    def keep(self, task: Task, label: str, text: str, limit: int) -> str:
        """A stored text: the text itself up to `limit` bytes, else a pointer to a new object.

        Parameters
        ----------
        task, label
            Whose it is, and what.
        text
            JSON text.
        limit
            Bytes that may stay inline.

        Raises
        ------
        StoreUnavailable
            The object could not be put.
        """
        if len(text) <= limit:
            body = text.encode()
            if len(body) <= limit:
                return text
        key = self._new_key(task, f"{label}.json")
        self._put(key, text.encode(), "application/json")
        return POINTER + key

    def load(self, stored: str) -> Any:
        """The JSON value of a stored text.

        Raises
        ------
        PayloadGone, StoreUnavailable
            The object is no longer there; or no answer.
        """
        if not stored.startswith(POINTER):
            return json.loads(stored)
        with self.open_key(stored.removeprefix(POINTER)) as body:
            return json.loads(body.read())

    def put_bytes(self, task: Task, label: str, data: bytes, mime_type: str) -> str:
        """Put bytes under a new key and return the pointer.

        Raises
        ------
        StoreUnavailable
            The object could not be put.
        """
        key = self._new_key(task, label)
        self._put(key, data, mime_type)
        return POINTER + key

    def put_file(self, task: Task, label: str, file: IO[bytes], mime_type: str) -> str:
        """Stream a file into a new object, in parts and bounded memory, and return the pointer.

        Raises
        ------
        StoreUnavailable
            The object could not be put.
        """
        from boto3.exceptions import S3UploadFailedError
        from boto3.s3.transfer import TransferConfig
        from botocore.exceptions import BotoCoreError, ClientError

        key = self._new_key(task, label)
        # boto3's own choice keeps ten parts and more in memory, which is more than a small Lambda has.
        one_part_at_a_time = TransferConfig(use_threads=False)
        try:
            self._client.upload_fileobj(
                file, self._bucket, key, ExtraArgs={"ContentType": mime_type}, Config=one_part_at_a_time
            )
        except (ClientError, BotoCoreError, S3UploadFailedError) as error:
            raise StoreUnavailable(type(error).__name__) from error
        return POINTER + key

    def link(self, pointer: str, *, seconds: int, filename: str) -> str:
        """A presigned URL for the object of a pointer: made locally, no call.

        Parameters
        ----------
        seconds
            Life of the URL.
        filename
            Name under which a browser saves it.
        """
        quoted = safe_name(filename)
        parameters = {
            "Bucket": self._bucket,
            "Key": pointer.removeprefix(POINTER),
            "ResponseContentDisposition": f'attachment; filename="{quoted}"',
        }
        return self._client.generate_presigned_url("get_object", Params=parameters, ExpiresIn=seconds)

    def open_input(self, uri: str, owner: str) -> IO[bytes]:
        """A document that a caller handed in by ``s3://`` URI, as a stream of bytes.

        Parameters
        ----------
        uri
            Must lie under ``s3://{bucket}/inputs/{owner}/``.
        owner
            The task's owner.

        Raises
        ------
        ToolError
            It lies elsewhere, or is not there; the text says so without saying what else exists.
        """
        prefix = self.input_prefix(owner)
        if not _is_below(uri, prefix):
            raise ToolError(f"A document must lie under {prefix}; this one does not.")
        try:
            return self.open_key(uri.removeprefix(f"s3://{self._bucket}/"))
        except PayloadGone as error:
            raise ToolError("There is no such document under your input prefix.") from error

    def uri(self, pointer: str) -> str:
        """The ``s3://`` URI of a pointer's object."""
        return f"s3://{self._bucket}/{pointer.removeprefix(POINTER)}"

    def input_prefix(self, owner: str) -> str:
        """The URI prefix of the documents that an owner hands in."""
        return f"s3://{self._bucket}/inputs/{owner}/"

    def holds(self, uri: str) -> bool:
        """Whether a URI points into this bucket."""
        return f"{uri}/".startswith(f"s3://{self._bucket}/")

    def is_input(self, uri: str, owner: str) -> bool:
        """Whether a URI names a document under an owner's input prefix."""
        return _is_below(uri, self.input_prefix(owner))

    def result_uri(self, task: Task) -> str:
        """Where the container of a task's run stores its result: below it, one object per job and attempt."""
        return f"s3://{self._bucket}/{_results(task)}"

    def result_key(self, task: Task, job: str, attempt: int) -> str:
        """The key of the result that a job's attempt stores."""
        return f"{_results(task)}/{safe_name(job)}/{attempt}/result.json"

    def put_result(self, task: Task, job: str, attempt: int, text: str) -> None:
        """Store the result of a container's attempt; it counts when the job ends.

        Raises
        ------
        StoreUnavailable
            The object could not be put.
        """
        self._put(self.result_key(task, job, attempt), text.encode(), "application/json")

    def upload_link(self, key: str, *, seconds: int, mime_type: str | None = None, size: int | None = None) -> str:
        """A presigned URL for putting an object: made locally, no call.

        Parameters
        ----------
        key
            Where it goes.
        seconds
            Life of the URL.
        mime_type, size
            The ``Content-Type`` and the length in bytes that the upload must have; None for any.
        """
        parameters: dict[str, Any] = {"Bucket": self._bucket, "Key": key}
        if mime_type is not None:
            parameters["ContentType"] = mime_type
        if size is not None:
            parameters["ContentLength"] = size
        return self._client.generate_presigned_url("put_object", Params=parameters, ExpiresIn=seconds)

    def new_input_key(self, owner: str, name: str) -> str:
        """A key under an owner's input prefix that no other upload has."""
        return f"inputs/{owner}/{self._ids.nonce()}/{safe_name(name)}"

    def delete_all(self, task_id: str) -> None:
        """Delete every object of a task.

        Raises
        ------
        StoreUnavailable
            Not all could be deleted.
        """
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            pages = self._client.get_paginator("list_objects_v2").paginate(
                Bucket=self._bucket, Prefix=f"tasks/{task_id}/"
            )
            for page in pages:
                keys: Any = [{"Key": found["Key"]} for found in page.get("Contents", ())]
                if keys:
                    done = self._client.delete_objects(Bucket=self._bucket, Delete={"Objects": keys, "Quiet": True})
                    if done.get("Errors"):
                        raise StoreUnavailable("Some objects could not be deleted.")
        except (ClientError, BotoCoreError) as error:
            raise StoreUnavailable(type(error).__name__) from error

    def open_key(self, key: str) -> IO[bytes]:
        """The object's body as a stream.

        Raises
        ------
        PayloadGone, StoreUnavailable
            It is not there; or no answer.
        """
        return self.open_sized(key)[0]

    def open_sized(self, key: str) -> tuple[IO[bytes], int]:
        """The object's body as a stream, and how many bytes it has.

        Raises
        ------
        PayloadGone, StoreUnavailable
            It is not there; or no answer.
        """
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            answer: Any = self._client.get_object(Bucket=self._bucket, Key=key)
        except ClientError as error:
            if error.response.get("Error", {}).get("Code") in ("NoSuchKey", "404"):
                raise PayloadGone("The object is no longer in the bucket.") from error
            raise StoreUnavailable(type(error).__name__) from error
        except BotoCoreError as error:
            raise StoreUnavailable(type(error).__name__) from error
        return answer["Body"], int(answer["ContentLength"])

    def _new_key(self, task: Task, label: str) -> str:
        """A key that no other write has or will have."""
        return f"tasks/{task.task_id}/{task.run}-{task.attempt}/{self._ids.nonce()}/{safe_name(label)}"

    def _put(self, key: str, body: bytes, mime_type: str) -> None:
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            self._client.put_object(Bucket=self._bucket, Key=key, Body=body, ContentType=mime_type)
        except (ClientError, BotoCoreError) as error:
            raise StoreUnavailable(type(error).__name__) from error


def _results(task: Task) -> str:
    return f"tasks/{task.task_id}/results/{task.run}"


def _is_below(uri: str, prefix: str) -> bool:
    name = uri.removeprefix(prefix)
    return uri.startswith(prefix) and bool(name) and ".." not in name.split("/")


def safe_name(name: str) -> str:
    """A file name that fits into a key and a header: ASCII, without a path, at most 100 characters."""
    safe = "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "_" for c in name)[-100:]
    # A name of dots alone is a way through folders, to whoever resolves the URL.
    return safe if safe.strip(".") else "file"


def dump(value: Any) -> str:
    """JSON text of a value.

    Raises
    ------
    ValueError, TypeError
        JSON cannot carry it: a number that is not finite, or a type that it does not know.
    """
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    try:
        text.encode()
    except UnicodeEncodeError:
        # A lone surrogate has no UTF-8 form; escaped, it travels.
        return json.dumps(value, separators=(",", ":"), allow_nan=False)
    return text
