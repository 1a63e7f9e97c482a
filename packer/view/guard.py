"""`Guard`: refuses requests that do not come from the page itself, and forbids the page to load anything else.

Any page in any browser, and any user of this machine, can send requests to 127.0.0.1. So each address begins with a
token that only the printed address has, the name in `Host` must be ours (a name that another site made point here is
not), a request that another site caused is refused, and nothing but reading is allowed.
"""

from __future__ import annotations

from collections.abc import Iterable
from hmac import compare_digest

from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}
OURS = b"same-origin", b"none"
MOST_ADDRESS = 4096


class Guard:
    """Checks each request before the app sees it. Addresses begin with the token; without `hosts` any `Host` is good.

    The token is in the path and not in a cookie: a browser sends the cookies of 127.0.0.1 to every port, so also to a
    server of another user.
    """

    def __init__(self, app: ASGIApp, hosts: Iterable[str], token: str) -> None:
        self._app = app
        self._hosts = {host.encode() for host in hosts}
        self._token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                names = {name.lower() for name, _ in message["headers"]}
                added = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
                if b"cache-control" not in names:
                    added.append((b"cache-control", b"no-store"))
                message = {**message, "headers": [*message["headers"], *added]}
            await send(message)

        status, problem = self._problem(scope)
        app = PlainTextResponse(f"{problem}\n", status) if problem else self._app
        await app(self._within(scope), receive, send_guarded)

    def _problem(self, scope: Scope) -> tuple[int, str]:
        headers: list[tuple[bytes, bytes]] = scope["headers"]
        hosts = [value for name, value in headers if name == b"host"]
        if len(hosts) != 1 or (self._hosts and hosts[0].lower() not in self._hosts):
            return 403, "this is not the name of the server: open the address that packer view printed"
        if len(scope["path"]) + len(scope.get("query_string", b"")) > MOST_ADDRESS:
            return 414, "the address is too long"
        if not compare_digest(f"{scope['path']}/".split("/")[1].encode(), self._token.encode()):
            return 403, "the address lacks its token: open the address that packer view printed"
        if scope["method"] not in ("GET", "HEAD"):
            return 405, "nothing can be changed here"
        for name, value in headers:
            if name == b"origin" and value.lower() != b"http://" + hosts[0].lower():
                return 403, "another site asks"
            if name == b"sec-fetch-site" and value not in OURS and not _opens_page(self._within(scope), headers):
                return 403, "another site asks"
        return 200, ""

    def _within(self, scope: Scope) -> Scope:
        """Return the scope without the token."""
        if not scope["path"].startswith(f"/{self._token}"):
            return scope
        path = scope["path"][len(self._token) + 1 :] or "/"
        return {**scope, "path": path, "raw_path": path.encode()}


def _opens_page(scope: Scope, headers: list[tuple[bytes, bytes]]) -> bool:
    """Return whether a user followed a link to the page. It holds no data, and no other site sees it."""
    by_name = dict(headers)
    asked = by_name.get(b"sec-fetch-mode"), by_name.get(b"sec-fetch-dest")
    return scope["path"] == "/" and asked == (b"navigate", b"document")
