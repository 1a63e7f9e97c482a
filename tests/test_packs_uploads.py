"""`packer gc --uploads`: unfinished uploads are listed and ended, by prefix and age, on two servers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from conftest import good, json_of, run
from store_servers import BUCKET, server, use_server

from packer.errors import BusyError, TargetError, UsageError
from packer.packs.uploads import Uploads, end_uploads

Url = str
PART = b"x" * 1000


@pytest.fixture(params=["moto", "ministack"])
def url(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Url:
    """A folder in the bucket of a server."""
    pytest.importorskip("botocore")
    return use_server(server(request.param), monkeypatch)


def begin(url: Url, name: str, parts: int) -> None:
    """Begin an upload, and do not finish it."""
    client: Any = Uploads(url)._client
    key = f"{url.rpartition('/')[2]}{name}"
    number = client.create_multipart_upload(Bucket=BUCKET, Key=key)["UploadId"]
    for part in range(parts):
        client.upload_part(Bucket=BUCKET, Key=key, UploadId=number, PartNumber=part + 1, Body=PART)


@pytest.mark.long(short=lambda case: case["url"] == "ministack")
def test_uploads_are_listed_and_ended(url: Url) -> None:
    begin(url, "/shards/a.npy", 2)
    begin(url, "/shards/a.npy", 0)
    begin(url, "/shards/b.npy", 1)
    begin(url, "-of-others/shards/c.npy", 1)
    found = sorted((upload.name, upload.bytes) for upload in Uploads(url).list())
    assert found == [("shards/a.npy", 0), ("shards/a.npy", 2000), ("shards/b.npy", 1000)]
    listed = good("gc", "--uploads", "--grace", "9000d", url)
    assert f"{url}: 3 unfinished uploads; 0 are older than --grace: --end deletes them, 0 B" in listed.stdout
    young = json_of("gc", "--uploads", "--end", "--grace", "9000d", "--json", url)
    assert (len(young["young"]), young["old"]) == (3, []), "a build may be sending them now"
    would = run("gc", "--uploads", "--end", "--dry-run", "--grace", "0s", url).stdout
    assert "3 are older than --grace" in would
    assert len(list(Uploads(url).list())) == 3
    ended = run("gc", "--uploads", "--end", "--grace", "0s", url).stdout
    assert ended.count("ended ") == 3
    assert f"{url}: 3 unfinished uploads; 3 were ended, 2.9 KiB" in ended
    assert run("gc", "--uploads", url).stdout == f"{url}: no unfinished uploads\n"
    assert len(list(Uploads(f"{url}-of-others").list())) == 1
    for upload in Uploads(f"{url}-of-others").list():
        Uploads(f"{url}-of-others").end(upload)
        Uploads(f"{url}-of-others").end(upload)  # somebody else has ended it


def test_a_bucket_that_is_not_there(url: Url) -> None:
    with pytest.raises(TargetError, match="there is no such bucket"):
        end_uploads("s3://no-such-bucket/out", 0)


def test_what_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for location, advice in (
        (str(tmp_path), "a folder has no unfinished uploads"),
        ("gs://bucket/out", "AbortIncompleteMultipartUpload and the condition age"),
        ("abfss://bucket/out", "after a week"),
        ("memory://bucket/out", "ask the maker"),
    ):
        with pytest.raises(UsageError, match=advice):
            end_uploads(location, 0)
    assert run("gc", "--end", tmp_path).exit_code == 2
    use_server("http://127.0.0.1:9", monkeypatch)
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    with pytest.raises(BusyError, match=r"127\.0\.0\.1"):
        end_uploads("s3://bucket/out", 0)
