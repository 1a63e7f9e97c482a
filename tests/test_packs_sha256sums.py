"""`packer verify --sha256sums`: `sha256sum --check` accepts it for exactly the files of the current generation."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import RawFolder, good, pack, run

from readers.contract.manifest import STORAGES, Manifest


def check(out: Path, sums: str) -> subprocess.CompletedProcess[str]:
    command = ["sha256sum", "--check", "--quiet", "--strict"]
    return subprocess.run(command, input=sums, cwd=out, capture_output=True, text=True, check=False)


@pytest.mark.skipif(shutil.which("sha256sum") is None, reason="sha256sum is not installed")
@pytest.mark.parametrize("storage", STORAGES)
def test_sha256sum_accepts_every_file_and_notices_every_change(
    storage: str, raw_folder: RawFolder, tmp_path: Path
) -> None:
    out = pack(raw_folder.path, tmp_path / "out", "--format", storage)
    (out / "shards" / "of-another-generation.npy").write_bytes(b"")
    result = good("verify", "--quiet", "--sha256sums", out)
    assert "whole" in result.stderr
    names = [line.split("  ")[1] for line in result.stdout.splitlines()]
    kept = {path for path in out.glob("shards/*") if "another" not in path.name}
    table = f"generations/shards-{Manifest.load(out).table[:32]}.npy"
    assert sorted(names) == sorted(
        [*(str(path.relative_to(out)) for path in kept), "manifest.json", "generations/000001.json", table]
    )
    assert check(out, result.stdout).returncode == 0
    for name in names:
        data = (out / name).read_bytes()
        (out / name).write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
        found = check(out, result.stdout)
        assert (found.returncode, found.stdout) == (1, f"{name}: FAILED\n")
        (out / name).write_bytes(data)


def test_a_damaged_pack_prints_its_damage_and_no_sums(raw_folder: RawFolder, tmp_path: Path) -> None:
    out = pack(raw_folder.path, tmp_path / "out", "--format", "npy")
    image = next(out.glob("shards/*.image.npy"))
    image.write_bytes(image.read_bytes()[:-1])
    result = run("verify", "--quiet", "--sha256sums", out)
    assert result.exit_code == 4
    assert image.name in result.stdout
    assert "manifest.json" not in result.stdout


def test_sums_and_json_are_refused_together(tmp_path: Path) -> None:
    result = run("verify", "--sha256sums", "--json", tmp_path)
    assert result.exit_code == 2
    assert "take one of them" in result.output
