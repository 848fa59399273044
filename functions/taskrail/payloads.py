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
        prefix = f"s3://{self._bucket}/inputs/{owner}/"
        name = uri.removeprefix(prefix)
        if not uri.startswith(prefix) or not name or ".." in name.split("/"):
            raise ToolError(f"A document must lie under {prefix}; this one does not.")
        try:
            return self.open_key(uri.removeprefix(f"s3://{self._bucket}/"))
        except PayloadGone as error:
            raise ToolError("There is no such document under your input prefix.") from error

    def open_key(self, key: str) -> IO[bytes]:
        """The object's body as a stream.

        Raises
        ------
        PayloadGone, StoreUnavailable
            It is not there; or no answer.
        """
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            body: IO[bytes] = self._client.get_object(Bucket=self._bucket, Key=key)["Body"]  # type: ignore[assignment]
        except ClientError as error:
            if error.response.get("Error", {}).get("Code") in ("NoSuchKey", "404"):
                raise PayloadGone("The object is no longer in the bucket.") from error
            raise StoreUnavailable(type(error).__name__) from error
        except BotoCoreError as error:
            raise StoreUnavailable(type(error).__name__) from error
        return body

    def _new_key(self, task: Task, label: str) -> str:
        """A key that no other write has or will have."""
        return f"tasks/{task.task_id}/{task.run}-{task.attempt}/{self._ids.nonce()}/{safe_name(label)}"

    def _put(self, key: str, body: bytes, mime_type: str) -> None:
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            self._client.put_object(Bucket=self._bucket, Key=key, Body=body, ContentType=mime_type)
        except (ClientError, BotoCoreError) as error:
            raise StoreUnavailable(type(error).__name__) from error


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
