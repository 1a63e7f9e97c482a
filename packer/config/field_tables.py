"""The fields of a build as texts: `depth=values:depth/{key}.png`, or a table of options in JSON or TOML."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, cast

from packer.classes.documents import describe, unknown_key
from packer.config.values import Kind, choice, parse_range, whole
from packer.errors import UsageError
from packer.pairs.template import Template
from packer.pixels.choices import ALPHAS, DECODES, NUMBERS, band_choice, no_data_choice
from packer.pixels.field_options import BY_KIND, FieldOptions
from packer.pixels.label_rules import CODECS, DIVISORS, NO_DATA_LABELS, UNKNOWNS
from packer.pixels.number_rules import ID_CODECS, VALUE_INTERPOLATIONS
from readers.contract.field_entry import NAME
from readers.contract.json_entry import loads
from readers.contract.kinds import CLASSES, IDS, KINDS, MOST_BANDS, PICTURE

FROM, KIND = "from", "kind"
EXAMPLE = "depth=values:depth/{key}.png"


def parse_field(value: object) -> FieldOptions:
    """`depth=values:depth/{key}.png` is a name, a kind and a template; a table names every option."""
    if isinstance(value, tuple(BY_KIND.values())):
        value = to_table(cast("FieldOptions", value))
    table = value if isinstance(value, Mapping) else _short(str(value))
    kind = choice(tuple(BY_KIND)).parse(table.get(KIND, ""))
    options = BY_KIND[kind]
    attributes = {_key_of(attribute.name): attribute.name for attribute in fields(options)}
    for key in table:
        if key not in (*attributes, KIND):
            raise ValueError(f"{key!r} {unknown_key(key, [KIND, *attributes])}")
    values = {attributes[key]: _option(kind, key, setting) for key, setting in table.items() if key != KIND}
    if not NAME.fullmatch(name := str(values.get("name"))):
        raise ValueError(f"name {name!r}: expected up to 32 of a-z, 0-9 and _, and no name that has a meaning")
    return options(**values)


def format_field(value: object) -> str:
    """Return the JSON of a field, without the options that have their default."""
    return json.dumps(to_table(parse_field(value)), ensure_ascii=False)


def to_table(options: FieldOptions) -> dict[str, Any]:
    """Return the options of a field that differ from their default."""
    table: dict[str, Any] = {"name": options.name, KIND: options.kind}
    for attribute in fields(options):
        value = getattr(options, attribute.name)
        if attribute.name != "name" and value != attribute.default:
            table[_key_of(attribute.name)] = list(value) if isinstance(value, tuple) else value
    return table


def _key_of(attribute: str) -> str:
    return FROM if attribute == "files" else attribute


def _short(text: str) -> dict[str, Any]:
    """Return the table that a text stands for."""
    if text.startswith("{"):
        try:
            table: dict[str, Any] = loads(text)
        except ValueError as error:
            raise ValueError(f"{text!r}: is not JSON: {error}") from error
        return table
    name, equals, rest = text.partition("=")
    kind, colon, files = rest.partition(":")
    if not equals or (colon and not files):
        raise ValueError(f"{text!r}: expected NAME=KIND:TEMPLATE, such as {EXAMPLE}, or a table in JSON")
    return {"name": name, KIND: kind, **({FROM: files} if files else {})}


def _option(kind: str, key: str, value: Any) -> Any:
    """Return the typed value of an option of a field."""
    parse = _PARSERS.get((kind, key)) or _PARSERS["", key]
    try:
        return parse(value)
    except (ValueError, UsageError) as error:
        raise ValueError(f"{key} {describe(value)}: {error}") from error


def _text(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError("expected a text")
    return value


def _template(value: object) -> str:
    Template(_text(value))
    return str(value)


def _classes(value: object) -> str | tuple[str, ...]:
    if isinstance(value, (list, tuple)) and value and all(isinstance(name, str) for name in value):
        return tuple(value)
    if isinstance(value, (str, int)) and not isinstance(value, bool) and value:
        return str(value)
    raise ValueError("expected a list of names, a number of classes, or the path of a class table")


def _number(value: object) -> float:
    if type(value) not in (int, float) or not math.isfinite(value):  # type: ignore[arg-type]
        raise ValueError("expected a number")
    return value  # type: ignore[return-value]


def _scale(value: object) -> float:
    if _number(value) <= 0:
        raise ValueError("expected a number over 0")
    return _number(value)


def _maybe(parse: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value is None else parse(value)


def _dtype(kind: str) -> Callable[[Any], Any]:
    """Return the parser of the types that a kind may be stored in."""
    dtypes = {dtype for types in KINDS[kind].dtypes.values() for dtype in types}
    return choice([name for name, dtype in NUMBERS.items() if dtype in dtypes]).parse


def _divisor(value: object) -> int:
    return int(choice([*map(str, DIVISORS)]).parse(value))


_PARSERS: dict[tuple[str, str], Callable[[Any], Any]] = {
    ("", "name"): _text,
    ("", FROM): _template,
    ("", "bands"): _maybe(band_choice),
    ("", "range"): _maybe(parse_range),
    ("", "alpha"): choice(ALPHAS).parse,
    ("", "decode"): choice(DECODES).parse,
    ("", "pad"): _number,
    ("", "times"): whole(1, MOST_BANDS).parse,
    ("", "classes"): _maybe(_classes),
    ("", "unknown"): choice(UNKNOWNS).parse,
    ("", "threshold"): _maybe(whole(1, 65535).parse),
    ("", "divisor"): _divisor,
    ("", "invalid"): _maybe(_number),
    ("", "scale"): _scale,
    ("", "interpolation"): choice(VALUE_INTERPOLATIONS).parse,
    (CLASSES, "codec"): choice(CODECS).parse,
    (IDS, "codec"): choice(ID_CODECS).parse,
    (PICTURE, "nodata"): no_data_choice,
    (CLASSES, "nodata"): choice(NO_DATA_LABELS).parse,
    **{(kind, "dtype"): _maybe(_dtype(kind)) for kind in KINDS},
    **{(kind, "form"): choice(tuple(facts.dtypes)).parse for kind, facts in KINDS.items() if len(facts.dtypes) > 1},
}
FIELD = Kind("NAME=KIND:TEMPLATE", parse_field, format_field)
