"""`packer bench --encodings` packs some rows in each encoding, reads them in turns, and recommends one."""

from __future__ import annotations

from pathlib import Path
from tempfile import gettempdir

import pytest
import torch
from conftest import NATIVE, SMALL_SHARDS, RawFolder, errors_of, json_of, pack, run

from packer import build_pack
from packer.bench.encodings import EncodingResult, best_encodings
from packer.bench.request import BenchRequest
from packer.packs import trial_packs
from packer.sources.pack import PackSource
from readers import open_dataset
from readers.contract.manifest import Manifest
from readers.pack import Pack

pytestmark = pytest.mark.usefixtures("in_process")
RAW, LABEL, BOTH = (
    {"image": "raw", "label": "raw"},
    {"image": "raw", "label": "zstd"},
    {"image": "jpeg:95", "label": "zstd"},
)


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("packer.bench.encodings.ROUNDS", 1)
    monkeypatch.setattr(BenchRequest, "seconds_left", lambda request: 0.01)


def test_each_encoding_is_packed_and_read(raw_folder: RawFolder, tmp_path: Path) -> None:
    out = pack(raw_folder.path, tmp_path / "out", "--format", "lmdb", "--labels", "index", *SMALL_SHARDS)
    facts = json_of("bench", "--encodings", "--json", "--seconds", 1, "--quiet", "--split", "all", out)
    assert [each["fields"] for each in facts["encodings"]] == [RAW, LABEL, BOTH]
    assert facts["pack"] == {"path": str(out), "rows": 32}
    assert facts["pack"]["rows"] == Manifest.load(out).rows
    for each in facts["encodings"]:
        assert 0 < each["samples_per_second"]["least"] <= each["samples_per_second"]["median"]
    assert facts["encodings"][0]["of_as_stored"] == 1
    assert facts["encodings"][0]["pack_bytes"] == Manifest.load(out).bytes
    assert facts["recommended"]["fields"] in (RAW, LABEL)
    assert not list(Path(gettempdir()).glob("segpack-bench-*"))


def test_a_pack_of_native_rows_and_of_few_rows(raw_folder: RawFolder, tmp_path: Path) -> None:
    out = pack(raw_folder.path, tmp_path / "out", *NATIVE, "--encode", "image=jpeg:80")
    options = "--encodings", "--seconds", 1, "--quiet", "--crop", "8x8", "--split", "val"
    text = run("bench", *options, out).stdout
    assert text.startswith(f"{out}: 9 rows in trial packs, batches of 9 by ")
    assert "\nimage=jpeg:keep, as stored " in text
    assert "\nRecommended: " in text


def test_raw_pictures_are_not_measured(raw_folder: RawFolder) -> None:
    assert "packer build --dry-run RAW OUT" in errors_of(1, "bench", "--encodings", raw_folder.path)


def test_the_smallest_rows_that_are_as_fast_and_fit_are_recommended() -> None:
    def result(encodings: dict[str, str], size: int, rate: float, fits: bool = True) -> EncodingResult:
        return EncodingResult(encodings, size, size, fits, (rate,))

    raw, label, jpeg = result(RAW, 4, 100), result(LABEL, 3, 96), result(BOTH, 1, 1000)
    assert best_encodings([raw, label, jpeg])[0] is label
    assert best_encodings([raw, result(LABEL, 3, 94), jpeg])[0] is raw
    large = result(RAW, 4, 100, fits=False)
    assert best_encodings([large, result(LABEL, 3, 50), jpeg])[0].encodings == LABEL
    best, why = best_encodings([large, result(LABEL, 3, 96, fits=False), jpeg])
    assert (best, "loses" in why) == (jpeg, True)
    best, why = best_encodings([large, result(BOTH, 1, 9, fits=False)])
    assert (best.encodings, "nothing fits" in why) == (BOTH, True)
    assert best_encodings([jpeg, raw])[0] is jpeg
    assert best_encodings([raw, result({"image": "tiles-jpeg:256x256:95", "label": "raw"}, 1, 1000)])[0] is raw


def test_a_trial_has_as_many_rows_as_fit_by_their_own_sizes(
    varied_raw: RawFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = Pack.open(pack(varied_raw.path, tmp_path / "out", *NATIVE))
    sizes = [trial_packs._raw_bytes(opened, row) for row in range(opened.manifest.rows)]
    assert len(set(sizes)) > 1
    for most in (sum(sizes), sum(sizes) // 2, 1):
        monkeypatch.setattr(trial_packs, "MOST_BYTES", most)
        chosen = trial_packs._chosen(opened, range(len(sizes)))
        assert len(chosen) == 1 or sum(sizes[row] for row in chosen) <= most
        assert most < sum(sizes) or len(chosen) == len(sizes)


def test_a_source_of_some_rows_gives_these_alone(raw_folder: RawFolder, tmp_path: Path) -> None:
    out = pack(raw_folder.path, tmp_path / "out", *SMALL_SHARDS)
    build_pack(PackSource.at(out).only([29, 2, 3, 17]), tmp_path / "some")
    every, some = (open_dataset(path, "all") for path in (out, tmp_path / "some"))
    assert [some.key(row) for row in range(4)] == [every.key(row) for row in (2, 3, 17, 29)]
    for number, row in enumerate((2, 3, 17, 29)):
        assert all(map(torch.equal, some[number], every[row]))


def test_encodings_have_no_target(raw_folder: RawFolder, tmp_path: Path) -> None:
    out = pack(raw_folder.path, tmp_path / "out")
    assert "has no --target" in errors_of(2, "bench", "--encodings", "--target", 5, out)
