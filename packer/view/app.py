"""The addresses of the page. They name a row, a field, numbers and a query: no path is ever made of one."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterable
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from packer.errors import PackError, UsageError
from packer.view.find_rows import CountingError, whole
from packer.view.guard import Guard
from packer.view.layers import Layers, difference, drawn, layer_of, png, windows
from packer.view.viewed import AGAIN, FILE, MOST_ROWS, Viewed
from readers.contract.errors import ReadError
from readers.contract.fields import Field
from readers.contract.plain_text import one_line
from readers.contract.slices import Cut

FOREVER = {"cache-control": "private, max-age=31536000, immutable"}
"""Pictures have the digest of their generation in their address, so they never change."""
TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


def make_app(viewed: Viewed, hosts: Iterable[str], token: str) -> ASGIApp:
    """Return the server of a page, which answers requests with the token, under these names or under any."""
    pages = ViewPages(viewed)
    routes = [Route(path, _answer(static)) for path, static in _static().items()]
    routes += [
        Route("/api/pack", pages.pack),
        Route("/api/counting", pages.counting),
        Route("/api/rows", pages.rows),
        Route("/api/rows/{row}", pages.row),
        Route("/api/raw/{row}", pages.raw),
        Route("/{digest}/thumbnail/{row}", pages.thumbnail),
        Route("/{digest}/picture/{row}/{field}", pages.picture),
        Route("/{digest}/layer/{row}/{field}", pages.layer),
        Route("/difference/{row}/{field}", pages.difference),
    ]
    handlers: dict[Any, Any] = {PackError: _failed, ReadError: _failed, UsageError: _unusable}
    handlers[CountingError] = pages.busy
    return Guard(Starlette(routes=routes, exception_handlers=handlers), hosts, token)


class ViewPages:
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
        field, pixels, cache = self._shown(request)
        low, high = (request.query_params.get(name) for name in ("low", "high"))
        asked = None if low is None or high is None else (_number(low), _number(high))
        window, numbers = windows(field, pixels)
        facts = {"x-window": _pair(asked or window), "x-range": _pair(numbers)}
        return Response(png(drawn(field, pixels, asked)), headers={**cache, **facts}, media_type=PNG)

    def layer(self, request: Request) -> Response:
        field, pixels, cache = self._shown(request)
        layer = layer_of(field, pixels)
        shape = (*layer.planes.shape, layer.planes.itemsize)
        facts = {"x-shape": " ".join(map(str, shape)), "content-encoding": "gzip"}
        if layer.window is not None and layer.range is not None:
            facts |= {"x-window": _pair(layer.window), "x-range": _pair(layer.range)}
        data = gzip.compress(layer.planes.tobytes(), 1, mtime=0)
        return Response(data, headers={**cache, **facts}, media_type="application/octet-stream")

    def raw(self, request: Request) -> Response:
        """Read the files of a row again, and answer with what differs from the stored row."""
        return JSONResponse(self._viewed.raw_facts(self._row(request, self._viewed.layers)))

    def difference(self, request: Request) -> Response:
        """Answer with the pixels that differ from the other generation, or from the raw file."""
        layers, against = self._viewed.layers, self._viewed.against
        row, field = self._row(request, layers), self._field(request, layers)
        cut = _cut(request, layers, row)
        if "other" not in request.query_params:
            _, other = self._viewed.raw_pixels(row, field.name, AGAIN, cut)
        elif against is None:
            raise UsageError("no other generation was named")
        else:
            number = whole(request.query_params["other"], against.pack.manifest.rows)
            other = against.pixels(number, self._field(request, against), _cut(request, against, number))
        ours = layers.pixels(row, field, cut)
        if ours.shape != other.shape:
            return PlainTextResponse("the sizes differ, so no pixels can be compared")
        data, differ = difference(field, ours, other)
        return Response(data, headers={"x-pixels": str(differ)}, media_type=PNG)

    def _shown(self, request: Request) -> tuple[Field, NDArray[Any], dict[str, str]]:
        """Return a stored field of a row, or the field from its raw files, and how long it may be kept."""
        layers = self._layers(request)
        row, field = self._row(request, layers), self._field(request, layers)
        source, cut = _one_of(request, "of", ("", FILE, AGAIN)), _cut(request, layers, row)
        if not source:
            return field, layers.pixels(row, field, cut), FOREVER
        if layers is not self._viewed.layers:
            raise UsageError("only rows of the generation that is shown are read again")
        return *self._viewed.raw_pixels(row, field.name, source, cut), {}

    def _layers(self, request: Request) -> Layers:
        for layers in (self._viewed.layers, self._viewed.against):
            if layers is not None and request.path_params["digest"] == layers.digest:
                return layers
        raise UsageError("this generation is not shown: load the page again")

    def _row(self, request: Request, layers: Layers) -> int:
        return whole(request.path_params["row"], layers.pack.manifest.rows)

    def _field(self, request: Request, layers: Layers) -> Field:
        name = request.path_params["field"]
        if name not in layers.fields:
            raise UsageError("this generation does not have this field")
        return layers.fields[name]


PNG, JPEG = "image/png", "image/jpeg"


def _one_of(request: Request, name: str, choices: tuple[str, ...]) -> str:
    text = request.query_params.get(name, "")
    if text not in choices:
        raise UsageError(f"{name}: expected one of {choices}")
    return text


def _cut(request: Request, layers: Layers, row: int) -> Cut | None:
    """Return the plane of a volume that an address asks for: `side`, and `at`, an index there."""
    asked = request.query_params
    sides = layers.size(row)
    if "side" not in asked or len(sides) < 3:
        return None
    side = whole(asked["side"], len(sides))
    return Cut(side, min(whole(asked.get("at", ""), 1 << 31), sides[side] - 1))


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
    contents = {}
    for file in folder.iterdir():
        kind = TYPES.get("." + file.name.rpartition(".")[2])
        if kind is not None:
            contents["/" if file.name == "index.html" else f"/{file.name}"] = file.read_bytes(), kind
    return contents


def _answer(static: tuple[bytes, str]) -> Callable[[Request], Response]:
    data, kind = static

    def answer(request: Request) -> Response:
        return Response(data, headers={"cache-control": "no-cache"}, media_type=kind)

    return answer


async def _failed(request: Request, error: Exception) -> Response:
    return PlainTextResponse(one_line(str(error)), 500)


async def _unusable(request: Request, error: Exception) -> Response:
    return PlainTextResponse(one_line(str(error)), 400)
