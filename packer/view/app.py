"""The addresses of the page. They name a row, a field, numbers and a query: no path is ever made of one."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterable
from importlib.resources import files
from typing import Any

import numpy as np
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from packer.errors import PackError, UsageError
from packer.view.find_rows import CountingError, whole
from packer.view.guard import Guard
from packer.view.layers import Layers, png
from packer.view.viewed import MOST_ROWS, Viewed
from readers.contract.errors import ReadError
from readers.contract.fields import Field
from readers.contract.plain_text import one_line

FOREVER = {"cache-control": "private, max-age=31536000, immutable"}
"""Pictures have the digest of their generation in their address, so they never change."""
TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


def make_app(viewed: Viewed, hosts: Iterable[str], token: str = "") -> ASGIApp:
    """Return the server of a page, which answers to these hosts, or to whoever knows the token."""
    pages = Pages(viewed)
    routes = [Route(path, _answer(static)) for path, static in _static().items()]
    routes += [
        Route("/api/pack", pages.pack),
        Route("/api/counting", pages.counting),
        Route("/api/rows", pages.rows),
        Route("/api/rows/{row}", pages.row),
        Route("/{digest}/thumbnail/{row}", pages.thumbnail),
        Route("/{digest}/picture/{row}/{field}", pages.picture),
        Route("/{digest}/layer/{row}/{field}", pages.layer),
        Route("/difference/{row}/{field}", pages.difference),
    ]
    handlers: dict[Any, Any] = {PackError: _failed, ReadError: _failed, UsageError: _unusable}
    handlers[CountingError] = pages.busy
    return Guard(Starlette(routes=routes, exception_handlers=handlers), hosts, token)


class Pages:
    """Answers requests about one pack. Starlette runs these functions in threads."""

    def __init__(self, viewed: Viewed) -> None:
        self._viewed = viewed

    def pack(self, request: Request) -> Response:
        return JSONResponse(self._viewed.facts())

    def counting(self, request: Request) -> Response:
        return JSONResponse(self._viewed.counting())

    def busy(self, request: Request, error: Exception) -> Response:
        return JSONResponse(self._viewed.counting(), 503)

    def rows(self, request: Request) -> Response:
        asked = request.query_params
        start = whole(asked.get("from", "0"), 2**31)
        count = whole(asked.get("count", str(MOST_ROWS)), 2**31)
        return JSONResponse(self._viewed.rows(self._viewed.query(asked), start, count))

    def row(self, request: Request) -> Response:
        return JSONResponse(self._viewed.row(self._row(request, self._viewed.layers)))

    def thumbnail(self, request: Request) -> Response:
        layers = self._layers(request)
        labels = {"": None, "0": 0.0, "1": 1.0}[_one_of(request, "labels", ("", "0", "1"))]
        blind = _one_of(request, "blind", ("", "1")) == "1"
        return Response(layers.thumbnail(self._row(request, layers), blind, labels), headers=FOREVER, media_type=JPEG)

    def picture(self, request: Request) -> Response:
        layers, field = self._layers(request), self._field(request)
        row = self._row(request, layers)
        low, high = (request.query_params.get(name) for name in ("low", "high"))
        asked = None if low is None or high is None else (_number(low), _number(high))
        window, numbers = layers.window(row, field)
        facts = {"x-window": _pair(asked or window), "x-range": _pair(numbers)}
        return Response(layers.picture(row, field, asked), headers={**FOREVER, **facts}, media_type=PNG)

    def layer(self, request: Request) -> Response:
        layers, field = self._layers(request), self._field(request)
        layer = layers.layer(self._row(request, layers), field)
        shape = (*layer.planes.shape, layer.planes.itemsize)
        facts = {"x-shape": " ".join(map(str, shape)), "content-encoding": "gzip"}
        if layer.window is not None and layer.range is not None:
            facts |= {"x-window": _pair(layer.window), "x-range": _pair(layer.range)}
        data = gzip.compress(layer.planes.tobytes(), 1, mtime=0)
        return Response(data, headers={**FOREVER, **facts}, media_type="application/octet-stream")

    def difference(self, request: Request) -> Response:
        """Answer with the pixels that differ from those of the other generation, as white on black."""
        layers, field, against = self._viewed.layers, self._field(request), self._viewed.against
        if against is None:
            raise UsageError("no other generation was named")
        ours = layers.drawn(self._row(request, layers), field)
        other = against.drawn(whole(request.query_params.get("other", ""), against.pack.manifest.rows), field)
        if ours.shape != other.shape:
            raise UsageError("the sizes differ")
        apart = np.abs(ours.astype(np.int16) - other).astype(np.uint8)
        facts = {"x-pixels": str(int(apart.any(-1).sum()))}
        return Response(png(apart), headers=facts, media_type=PNG)

    def _layers(self, request: Request) -> Layers:
        for layers in (self._viewed.layers, self._viewed.against):
            if layers is not None and request.path_params["digest"] == layers.digest:
                return layers
        raise UsageError("this generation is not shown: load the page again")

    def _row(self, request: Request, layers: Layers) -> int:
        return whole(request.path_params["row"], layers.pack.manifest.rows)

    def _field(self, request: Request) -> Field:
        name = request.path_params["field"]
        if name not in self._viewed.fields:
            raise UsageError("unknown field")
        return self._viewed.fields[name]


PNG, JPEG = "image/png", "image/jpeg"


def _one_of(request: Request, name: str, known: tuple[str, ...]) -> str:
    text = request.query_params.get(name, "")
    if text not in known:
        raise UsageError(f"{name}: expected one of {known}")
    return text


def _number(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = np.nan
    if not np.isfinite(number):
        raise UsageError("expected a number")
    return number


def _pair(numbers: tuple[float, float]) -> str:
    return " ".join(map(repr, numbers))


def _static() -> dict[str, tuple[bytes, str]]:
    """Return the files of the page by their address. They are read once, so that no address is ever a path."""
    folder = files("packer.view").joinpath("static")
    found = {}
    for file in folder.iterdir():
        kind = TYPES.get("." + file.name.rpartition(".")[2])
        if kind is not None:
            found["/" if file.name == "index.html" else f"/{file.name}"] = file.read_bytes(), kind
    return found


def _answer(static: tuple[bytes, str]) -> Callable[[Request], Response]:
    data, kind = static

    def answer(request: Request) -> Response:
        return Response(data, headers={"cache-control": "no-cache"}, media_type=kind)

    return answer


async def _failed(request: Request, error: Exception) -> Response:
    return PlainTextResponse(one_line(str(error)), 500)


async def _unusable(request: Request, error: Exception) -> Response:
    return PlainTextResponse(one_line(str(error)), 400)
