"""A small Hugging Face Hub on loopback: the requests by which huggingface_hub reads and writes a data set, without Xet.

Files of over 1000 bytes are LFS: they are uploaded by themselves, and read from another host, which gets no token.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from typing import Any
from urllib.parse import unquote, urlsplit

REPO = r"(?P<repo>[^/]+/[^/]+)"
LARGE = 1000
DATE = "2026-01-01T00:00:00.000Z"
PAGE = 50
TOKEN = "hf_" + "only_for_tests"
ROUTES = {
    ("GET", rf"/api/datasets/{REPO}/revision/(?P<revision>[^/]+)"): "info",
    ("GET", rf"/api/datasets/{REPO}/tree/(?P<revision>[^/]+)(/(?P<path>.+))?"): "tree",
    ("GET", rf"/api/datasets/{REPO}/commits/(?P<revision>[^/]+)"): "commits",
    ("POST", rf"/api/datasets/{REPO}/preupload/(?P<revision>[^/]+)"): "preupload",
    ("POST", rf"/api/datasets/{REPO}/commit/(?P<revision>[^/]+)"): "commit",
    ("POST", rf"/datasets/{REPO}\.git/info/lfs/objects/batch"): "batch",
    ("PUT", r"/lfs/(?P<oid>[0-9a-f]{64})"): "upload",
    ("GET", r"/lfs/(?P<oid>[0-9a-f]{64})"): "download",
    ("GET", rf"/datasets/{REPO}/resolve/(?P<revision>[^/]+)/(?P<path>.+)"): "resolve",
}


@dataclass(frozen=True)
class Commit:
    """A commit with all files of its tree."""

    oid: str
    message: str
    files: dict[str, bytes]


@dataclass
class Repo:
    """The commits of each branch, the last one last."""

    branches: dict[str, list[Commit]]
    private: bool = False
    ignored: frozenset[str] = frozenset()


class RefusedError(Exception):
    """An answer that is not 200, and the word by which the client knows what is missing."""

    def __init__(self, status: int, message: str, code: str = "") -> None:
        super().__init__(message)
        self.status, self.code = status, code


@dataclass
class Request:
    """The headers, the body, the query and the host of a request."""

    headers: Message
    body: bytes
    query: str
    host: str

    @property
    def knows_token(self) -> bool:
        return self.headers.get("authorization") == f"Bearer {TOKEN}"


@dataclass
class Answer:
    """A status, headers and a body."""

    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    status: int = 200


class HubServer:
    """Repositories, the contents of large files, and the bytes that arrived."""

    def __init__(self) -> None:
        self.repos: dict[str, Repo] = {}
        self.large: dict[str, bytes] = {}
        self.received = 0
        self.ranges = True
        self._lock = Lock()

        class Handler(_Handler):
            hub = self

        for method in ("GET", "PUT", "POST"):
            setattr(Handler, f"do_{method}", Handler.reply)
        self._server = _Server(("127.0.0.1", 0), Handler)
        self._port = self._server.server_address[1]
        self.url = f"http://127.0.0.1:{self._port}"
        Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def make(self, name: str, files: Mapping[str, bytes] | None = None, private: bool = False) -> Repo:
        """Make a repository as the Hub does: it has a first commit with a file of the Hub's own."""
        repo = self.repos[name] = Repo({"main": []}, private)
        self.add(repo, "main", "initial commit", {".gitattributes": b"*.npy filter=lfs\n", **(files or {})})
        return repo

    def add(self, repo: Repo, branch: str, message: str, files: dict[str, bytes]) -> Commit:
        """Commit files, as the next commit of a branch."""
        commits = repo.branches[branch]
        number = f"{branch} {len(commits)} {message} {sorted(files)}"
        commits.append(Commit(hashlib.sha1(number.encode()).hexdigest(), message, {**self._files(commits), **files}))
        return commits[-1]

    def _files(self, commits: list[Commit]) -> dict[str, bytes]:
        return commits[-1].files if commits else {}

    def answer(self, method: str, path: str, request: Request) -> Answer:
        for (wanted, pattern), name in ROUTES.items():
            found = re.fullmatch(pattern, path)
            if method == wanted and found:
                parts = {key: unquote(value or "") for key, value in found.groupdict().items()}
                with self._lock:
                    self.received += len(request.body)
                    return getattr(self, f"_{name}")(request, **self._checked(request, method, parts))  # type: ignore[no-any-return]
        raise RefusedError(404, "no such route")

    def _checked(self, request: Request, method: str, parts: dict[str, str]) -> dict[str, Any]:
        """Replace the name of a repository by the repository, if this token may see it."""
        if "repo" not in parts:
            return parts
        repo = self.repos.get(parts["repo"])
        if repo is None or (repo.private and not request.knows_token):
            status = 404 if request.knows_token else 401
            raise RefusedError(status, "Repository not found", "RepoNotFound")
        if method != "GET" and not request.knows_token:
            raise RefusedError(403, "You don't have the rights required to write")
        return {**parts, "repo": repo}

    def _at(self, repo: Repo, revision: str) -> Commit:
        if revision in repo.branches:
            return repo.branches[revision][-1]
        known = [commit for commits in repo.branches.values() for commit in commits if commit.oid == revision]
        if not known:
            raise RefusedError(404, f"Invalid rev id: {revision}", "RevisionNotFound")
        return known[0]

    def _info(self, request: Request, repo: Repo, revision: str) -> Answer:
        return _json({"id": "me/pack", "sha": self._at(repo, revision).oid})

    def _tree(self, request: Request, repo: Repo, revision: str, path: str) -> Answer:
        files = self._at(repo, revision).files
        names = sorted(name for name in files if not path or name.startswith(f"{path}/"))
        if path and not names:
            raise RefusedError(404, "not found", "EntryNotFound")
        folders = sorted({name.rpartition("/")[0] for name in names} - {"", path})
        start = int(dict(part.partition("=")[::2] for part in request.query.split("&")).get("cursor", 0))
        entries = [{"type": "directory", "path": name, "oid": ""} for name in folders] if start == 0 else []
        entries += [_entry(name, files[name]) for name in names[start : start + PAGE]]
        answer = _json(entries)
        if start + PAGE < len(names):
            name = next(name for name, known in self.repos.items() if known is repo)
            more = f"http://{request.host}/api/datasets/{name}/tree/{revision}" + (f"/{path}" if path else "")
            answer.headers["link"] = f'<{more}?recursive=true&cursor={start + PAGE}>; rel="next"'
        return answer

    def _commits(self, request: Request, repo: Repo, revision: str) -> Answer:
        self._at(repo, revision)
        return _json(
            [
                {
                    "id": each.oid,
                    "title": "",
                    "message": each.message,
                    "authors": [],
                    "date": "2026-01-01T00:00:00.000Z",
                }
                for each in reversed(repo.branches[revision])
            ]
        )

    def _preupload(self, request: Request, repo: Repo, revision: str) -> Answer:
        files = self._at(repo, revision).files
        return _json(
            {
                "files": [
                    {
                        "path": file["path"],
                        "uploadMode": "lfs" if file["size"] > LARGE else "regular",
                        "shouldIgnore": file["path"] in repo.ignored,
                        "oid": _entry("", files[file["path"]])["oid"] if file["path"] in files else None,
                    }
                    for file in json.loads(request.body)["files"]
                ]
            }
        )

    def _batch(self, request: Request, repo: Repo) -> Answer:
        objects = json.loads(request.body)["objects"]
        for each in objects:
            if each["oid"] not in self.large:
                href = f"http://{request.host}/lfs/{each['oid']}?Signature=secret"
                each["actions"] = {"upload": {"href": href}}
        return _json({"transfer": "basic", "objects": objects})

    def _upload(self, request: Request, oid: str) -> Answer:
        if hashlib.sha256(request.body).hexdigest() != oid:
            raise RefusedError(400, "the bytes have another SHA-256")
        self.large[oid] = request.body
        return Answer()

    def _commit(self, request: Request, repo: Repo, revision: str) -> Answer:
        header, *operations = map(json.loads, request.body.splitlines())
        if header["value"].get("parentCommit") not in (None, self._at(repo, revision).oid):
            raise RefusedError(412, "A commit has happened since. Please refresh and try again.")
        if revision not in repo.branches:
            raise RefusedError(400, f"{revision} is not a branch")
        files = {}
        for each in operations:
            value = each["value"]
            if each["key"] == "lfsFile":
                if value["oid"] not in self.large:
                    raise RefusedError(400, "the content of a large file was not uploaded")
                files[value["path"]] = self.large[value["oid"]]
            else:
                files[value["path"]] = base64.b64decode(value["content"])
        commit = self.add(repo, revision, header["value"]["description"], files)
        return _json(
            {"commitUrl": f"http://{request.host}/datasets/me/pack/commit/{commit.oid}", "commitOid": commit.oid}
        )

    def _resolve(self, request: Request, repo: Repo, revision: str, path: str) -> Answer:
        files = self._at(repo, revision).files
        if path not in files:
            raise RefusedError(404, "Entry not found", "EntryNotFound")
        data = files[path]
        if len(data) <= LARGE:
            return self._part(request, data, _blob(data))
        oid = hashlib.sha256(data).hexdigest()
        self.large[oid] = data
        place = f"http://localhost:{request.host.rpartition(':')[2]}/lfs/{oid}"
        return Answer(headers={"location": place, "x-linked-etag": f'"{oid}"'}, status=302)

    def _download(self, request: Request, oid: str) -> Answer:
        if "authorization" in request.headers:
            raise RefusedError(400, "a token for the Hub went to another host")
        return self._part(request, self.large[oid], "of the other host")

    def _part(self, request: Request, data: bytes, tag: str) -> Answer:
        """Return the range that is asked for, or all if this Hub knows no ranges."""
        etag = {"etag": f'"{tag}"'}
        found = re.fullmatch(r"bytes=(\d+)-(\d*)", request.headers.get("range", ""))
        if found is None or not self.ranges:
            return Answer(data, etag)
        start, stop = int(found[1]), int(found[2]) + 1 if found[2] else len(data)
        if start >= len(data):
            raise RefusedError(416, "no such range")
        return Answer(data[start:stop], etag, 206)


def _json(document: object) -> Answer:
    return Answer(json.dumps(document).encode(), {"content-type": "application/json"})


def _entry(name: str, data: bytes) -> dict[str, Any]:
    """Return a file as it is in a listing."""
    entry = {"type": "file", "path": name, "size": len(data)}
    if len(data) <= LARGE:
        return {**entry, "oid": _blob(data)}
    oid = hashlib.sha256(data).hexdigest()
    return {**entry, "oid": oid, "lfs": {"oid": oid, "size": len(data), "pointerSize": 130}}


def _blob(data: bytes) -> str:
    """Return what Git calls a file."""
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    hub: HubServer

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the base class
        """Say nothing."""

    def reply(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        parts = urlsplit(self.path)
        try:
            request = Request(self.headers, body, parts.query, self.headers["host"])
            answer = self.hub.answer(self.command, parts.path, request)
        except RefusedError as refused:
            answer = _json({"error": str(refused)})
            answer.status = refused.status
            answer.headers["x-error-code"] = refused.code
        self.send_response_only(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(answer.body)))
        self.end_headers()
        self.wfile.write(answer.body)
