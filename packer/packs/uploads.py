"""`packer gc --uploads`: unfinished uploads in parts. Listings do not show them, and their bytes are billed."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from packer.errors import BusyError, TargetError, UsageError
from readers.stores.open_store import open_store, url_of

S3 = ("s3", "s3a")
ELSEWHERE = {
    "gs": "give the bucket a rule with the action AbortIncompleteMultipartUpload and the condition age",
    "az": "Azure deletes such parts after a week",
}
_ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
_YES = ("1", "true", "on", "yes", "y")
_NO_BUCKET, _ENDED = "NoSuchBucket", "NoSuchUpload"


@dataclass(frozen=True)
class Upload:
    """An upload that was begun and never finished."""

    name: str
    """The name of its object below the URL."""
    number: str
    """The id that the store gave it."""
    begun: float
    """Seconds since 1970, by the clock of the store."""
    bytes: int
    """The bytes of the parts that are there."""


class Uploads:
    """The unfinished uploads below a URL of S3. Credentials and endpoint come from the environment, as for obstore."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(_checked(url))
        self.url, self._bucket = url, parts.netloc
        folder = parts.path.strip("/")
        self._prefix = f"{folder}/" if folder else ""
        try:
            import botocore.exceptions
            from botocore import UNSIGNED
            from botocore.config import Config
            from botocore.session import Session
        except ImportError:
            raise TargetError(f"{url}: --uploads needs botocore; pip install 'segpack[gc]'") from None
        self._errors_of = botocore.exceptions
        endpoint = next(filter(None, map(os.environ.get, _ENDPOINTS)), None)
        in_path = endpoint is not None and not _is_set("AWS_VIRTUAL_HOSTED_STYLE_REQUEST")
        options: dict[str, Any] = {"s3": {"addressing_style": "path" if in_path else "auto"}}
        if _is_set("AWS_SKIP_SIGNATURE"):
            options["signature_version"] = UNSIGNED
        region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or "us-east-1"
        with self._errors():
            self._client: Any = Session().create_client(
                "s3", region_name=region, endpoint_url=endpoint, config=Config(**options)
            )

    def list(self) -> Iterator[Upload]:
        """Yield the uploads below the URL: a request for 1,000 of them, and one for the parts of each."""
        with self._errors():
            pages = self._client.get_paginator("list_multipart_uploads")
            for page in pages.paginate(Bucket=self._bucket, Prefix=self._prefix):
                for entry in page.get("Uploads", ()):
                    if not entry["Key"].startswith(self._prefix):  # a store may not know prefixes
                        continue
                    name = entry["Key"].removeprefix(self._prefix)
                    size = self._size(entry["Key"], entry["UploadId"])
                    yield Upload(name, entry["UploadId"], entry["Initiated"].timestamp(), size)

    def end(self, upload: Upload) -> None:
        """End an upload, so that its parts are deleted. It is not an error if it has ended."""
        with self._errors():
            try:
                key = self._prefix + upload.name
                self._client.abort_multipart_upload(Bucket=self._bucket, Key=key, UploadId=upload.number)
            except self._errors_of.ClientError as error:
                if _code(error) != _ENDED:
                    raise

    def _size(self, key: str, number: str) -> int:
        pages = self._client.get_paginator("list_parts").paginate(Bucket=self._bucket, Key=key, UploadId=number)
        try:
            return sum(part["Size"] for page in pages for part in page.get("Parts", ()))
        except self._errors_of.ClientError as error:
            if _code(error) != _ENDED:
                raise
            return 0

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Turn the errors of botocore into errors of the packer."""
        errors = self._errors_of
        try:
            yield
        except errors.ClientError as error:
            if _code(error) == _NO_BUCKET:
                raise TargetError(f"{self.url}: there is no such bucket; make it, or correct its name") from error
            status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
            kind = BusyError if status >= 500 or status == 429 else TargetError
            raise kind(f"{self.url}: {error}") from error
        except (errors.HTTPClientError, errors.ConnectionError) as error:
            raise BusyError(f"{self.url}: {error}") from error
        except (errors.BotoCoreError, ValueError) as error:
            raise TargetError(f"{self.url}: {error}") from error


def end_uploads(url: str, grace: float, dry_run: bool = False) -> tuple[list[Upload], list[Upload]]:
    """End the uploads below a URL that are older than `grace` seconds. Return them, and the others.

    A younger one may belong to a build that runs now.
    """
    uploads, until = Uploads(url), time.time() - grace
    listed = list(uploads.list())
    old = [upload for upload in listed if upload.begun <= until]
    if not dry_run:
        for upload in old:
            uploads.end(upload)
    return old, [upload for upload in listed if upload.begun > until]


def _checked(url: str) -> str:
    """Return the URL of a folder in S3. Raise UsageError for anything else, which says what to do there."""
    bucket_url = url_of(url)
    if bucket_url is None:
        raise UsageError(f"{url}: --uploads is for buckets of S3; a folder has no unfinished uploads")
    scheme = bucket_url.partition(":")[0]
    if scheme not in S3:
        advice = ELSEWHERE.get("az" if scheme.startswith(("az", "abfs")) else scheme, "ask the maker of that store")
        raise UsageError(f"{url}: --uploads is for buckets of S3; for {scheme}: {advice}")
    open_store(bucket_url)  # refuses keys in a URL
    return bucket_url


def _is_set(variable: str) -> bool:
    return os.environ.get(variable, "").lower() in _YES


def _code(error: Any) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))
