"""The description of a pack as Croissant JSON-LD: its files with their SHA-256, its splits and classes.

Croissant's own tools cannot read the rows of a pack; they load the splits and classes from its manifest.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from readers.contract.files import plain_file, sha256
from readers.contract.manifest import MANIFEST, Manifest
from readers.contract.shard_table import table_path

CONFORMS_TO = "http://mlcommons.org/croissant/1.0"
CONTEXT: dict[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "equivalentProperty": "cr:equivalentProperty",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "extract": "cr:extract",
    "field": "cr:field",
    "fileProperty": "cr:fileProperty",
    "fileObject": "cr:fileObject",
    "fileSet": "cr:fileSet",
    "format": "cr:format",
    "includes": "cr:includes",
    "isLiveDataset": "cr:isLiveDataset",
    "jsonPath": "cr:jsonPath",
    "key": "cr:key",
    "md5": "cr:md5",
    "parentField": "cr:parentField",
    "path": "cr:path",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "recordSet": "cr:recordSet",
    "references": "cr:references",
    "regex": "cr:regex",
    "repeated": "cr:repeated",
    "replace": "cr:replace",
    "samplingRate": "cr:samplingRate",
    "sc": "https://schema.org/",
    "separator": "cr:separator",
    "source": "cr:source",
    "subField": "cr:subField",
    "transform": "cr:transform",
}


class About(NamedTuple):
    """The facts about a data set that only people know."""

    name: str
    description: str
    licence: str
    url: str


def croissant(out: Path, manifest: Manifest, about: About, files: Sequence[str] = ()) -> dict[str, Any]:
    """Return the description. `files` are lines of SHA-256 and path; without them only the manifest and table count."""
    described = [_pair(line) for line in files] or list(_few(out, manifest))
    return {
        "@context": CONTEXT,
        "@type": "sc:Dataset",
        "name": about.name,
        "description": about.description,
        "conformsTo": CONFORMS_TO,
        "license": about.licence,
        **({"url": about.url} if about.url else {}),
        "version": f"{manifest.generation}.0.0",
        "datePublished": manifest.created[:10],
        "distribution": [*(_file(out, digest, path) for digest, path in described), *_manifests(out, manifest)],
        "recordSet": list(_record_sets(manifest)),
    }


def _pair(line: str) -> tuple[str, str]:
    digest, _, path = line.partition("  ")
    return digest, path


def _manifests(out: Path, manifest: Manifest) -> Iterator[dict[str, Any]]:
    """Yield the manifest once more for each set of records: mlcroissant reads one set from a JSON file."""
    digest = sha256(plain_file(out, out / MANIFEST))
    for records in _record_sets(manifest):
        yield _file(out, digest, MANIFEST) | {"@id": _source(records["name"]), "name": _source(records["name"])}


def _source(name: str) -> str:
    return f"manifest-{name}"


def _few(out: Path, manifest: Manifest) -> Iterator[tuple[str, str]]:
    """Yield the files that say everything of the others: the receipts and shards hang on the SHA-256 in the table."""
    for path in (out / MANIFEST, table_path(out, manifest.table)):
        yield sha256(plain_file(out, path)), path.relative_to(out).as_posix()


def _file(out: Path, digest: str, path: str) -> dict[str, Any]:
    kind = {".json": "application/json", ".h5": "application/x-hdf5", ".arrow": "application/vnd.apache.arrow.file"}
    return {
        "@type": "cr:FileObject",
        "@id": path,
        "name": path,
        "contentUrl": path,
        "contentSize": f"{(out / path).stat().st_size} B",
        "encodingFormat": kind.get(Path(path).suffix, "application/octet-stream"),
        "sha256": digest,
    }


def _record_sets(manifest: Manifest) -> Iterator[dict[str, Any]]:
    """Yield the splits, and the classes of each field that has some, as records that are read from the manifest."""
    yield _records("splits", "The splits and their rows", "$.splits[*]", {"name": "sc:Text", "rows": "sc:Integer"})
    for number, field in enumerate(manifest.fields):
        if field.classes is not None:
            path = f"$.fields[{number}].classes.classes[*]"
            yield _records(f"{field.name}_classes", f"The classes of {field.name} in order", path, {"name": "sc:Text"})


def _records(name: str, description: str, path: str, columns: dict[str, str]) -> dict[str, Any]:
    return {
        "@type": "cr:RecordSet",
        "@id": name,
        "name": name,
        "description": description,
        "field": [
            {
                "@type": "cr:Field",
                "@id": f"{name}/{column}",
                "name": column,
                "dataType": kind,
                "source": {"fileObject": {"@id": _source(name)}, "extract": {"jsonPath": f"{path}.{column}"}},
            }
            for column, kind in columns.items()
        ],
    }
