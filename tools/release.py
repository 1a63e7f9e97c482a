"""Make a release from a clean clone: source archive and wheel, each built twice, checksums, a list of parts, the tag.

    tools/run release               # writes dist/; the version is readers.contract.VERSION
    tools/run release --tag         # also makes the tag v0.2.0, whose push publishes
    tools/run release --sdist-only

Both builds must have the same bytes: they happen in different folders, with the time of the commit. Wheels of other
systems are built by .github/workflows/wheels.yml. The tools are pinned in tools/release-requirements.txt.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Sequence
from io import BytesIO
from pathlib import Path

from program import REPO, parser

from readers.contract import VERSION

DIST = REPO / "dist"
SUMS = "SHA256SUMS"


def git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=REPO, check=True, capture_output=True, text=True).stdout.strip()


def problems(tag: bool) -> list[str]:
    """Return what is missing for a release."""
    found = []
    if git("status", "--porcelain"):
        found.append("files differ from the last commit, or are not in it: git status")
    if not re.search(rf"^## {re.escape(VERSION)} \(\d{{4}}-\d\d-\d\d\)$", (REPO / "CHANGELOG.md").read_text(), re.M):
        found.append(f"CHANGELOG.md has no heading '## {VERSION} (YYYY-MM-DD)'")
    if f"\nversion: {VERSION}\n" not in (REPO / "CITATION.cff").read_text():
        found.append(f"CITATION.cff has another version than {VERSION}")
    if tag and git("tag", "--list", f"v{VERSION}"):
        found.append(f"the tag v{VERSION} exists: raise VERSION in readers/contract/__init__.py")
    return found


class Tools:
    """An environment with the pinned tools, which run with the time of the commit."""

    def __init__(self, folder: Path) -> None:
        self.bin = folder / "bin"
        self.environment = {
            **os.environ,
            "SOURCE_DATE_EPOCH": git("log", "-1", "--format=%ct"),
            "PATH": f"{self.bin}:{os.environ['PATH']}",
        }
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        requirements = str(REPO / "tools" / "release-requirements.txt")
        self.run("pip", "install", "--quiet", "--disable-pip-version-check", "--requirement", requirements)

    def run(self, name: str, *arguments: str, folder: Path = REPO) -> None:
        """Run a tool. Show what it printed if it fails."""
        command = [str(self.bin / name), *arguments]
        done = subprocess.run(command, cwd=folder, env=self.environment, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"{' '.join(command)}: exit {done.returncode}\n{done.stdout}{done.stderr}")


def sdist(tools: Tools, folder: Path) -> Path:
    """Build the source archive from what is committed, in a folder. Its members are sorted and have no owner."""
    source = folder / "source"
    source.mkdir(parents=True)
    with tarfile.open(fileobj=BytesIO(subprocess.check_output(["git", "archive", "HEAD"], cwd=REPO))) as archive:
        archive.extractall(source, filter="data")
    tools.run("python", "-m", "build", "--no-isolation", "--sdist", "--outdir", str(folder / "out"), folder=source)
    (built,) = (folder / "out").glob("*.tar.gz")
    time = int(tools.environment["SOURCE_DATE_EPOCH"])
    target = folder / built.name
    with (
        tarfile.open(built) as old,
        target.open("wb") as file,
        gzip.GzipFile("", "wb", mtime=time, fileobj=file) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as new,
    ):
        for member in sorted(old.getmembers(), key=lambda member: member.name):
            member.mtime, member.uid, member.gid, member.uname, member.gname = time, 0, 0, "", ""
            member.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
            member.pax_headers = {}
            new.addfile(member, old.extractfile(member) if member.isfile() else None)
    return target


def wheel(tools: Tools, archive: Path, folder: Path) -> Path:
    """Build the wheel of this system from the source archive, and check which systems and Pythons may load it."""
    tools.run(
        "python",
        "-m",
        "build",
        "--no-isolation",
        "--wheel",
        "--outdir",
        str(folder / "out"),
        str(unpacked(archive, folder)),
    )
    (built,) = (folder / "out").glob("*.whl")
    if not sys.platform.startswith("linux"):
        return built
    tools.run("auditwheel", "repair", "--wheel-dir", str(folder), str(built))
    (repaired,) = folder.glob("*.whl")
    if "abi3" in repaired.name:
        tools.run("abi3audit", "--strict", str(repaired))
    return repaired


def unpacked(archive: Path, folder: Path) -> Path:
    with tarfile.open(archive) as opened:
        opened.extractall(folder, filter="data")
    return folder / archive.name.removesuffix(".tar.gz")


def twice(make: Callable[[Path], Path], folder: Path) -> Path:
    """Make a file in two folders, and return it if both have the same bytes."""
    first, second = (make(folder / name) for name in ("a", "a folder with another name"))
    if first.name != second.name or digest(first) != digest(second):
        sys.exit(f"{first.name}: two builds have different bytes")
    print(f"{first.name}: {first.stat().st_size:,} bytes, twice the same", file=sys.stderr)
    return first


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def list_parts(tools: Tools, built: Path, folder: Path) -> Path:
    """Install the wheel with what it needs, and write the versions and licences of all as CycloneDX."""
    target = folder / f"segpack-{VERSION}.cdx.json"
    subprocess.run([sys.executable, "-m", "venv", str(folder / "installed")], check=True)
    python = folder / "installed" / "bin" / "python"
    quiet = ("--quiet", "--disable-pip-version-check")
    subprocess.run([str(python), "-m", "pip", "install", *quiet, str(built)], check=True)
    subprocess.run([str(python), "-m", "pip", "uninstall", *quiet, "--yes", "pip", "setuptools"], check=True)
    options = ("--output-reproducible", "--output-format", "JSON", "--output-file", str(target))
    tools.run("cyclonedx-py", "environment", *options, str(python))
    return target


def write_sums(paths: Sequence[Path]) -> None:
    """Copy files to dist/, with a file that `sha256sum --check` reads."""
    shutil.rmtree(DIST, ignore_errors=True)
    DIST.mkdir()
    for path in paths:
        shutil.copy2(path, DIST)
    (DIST / SUMS).write_text("".join(f"{digest(path)}  {path.name}\n" for path in sorted(paths)))
    print((DIST / SUMS).read_text(), end="")


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--sdist-only", action="store_true", help="neither wheel nor list of parts")
    options.add_argument("--tag", action="store_true", help="make the tag when all is done")
    chosen = options.parse_args()
    missing = problems(chosen.tag)
    if missing:
        sys.exit("\n".join(f"release: {problem}" for problem in missing))
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        tools = Tools(folder / "tools")
        archive = twice(lambda place: sdist(tools, place), folder / "sdist")
        made = [archive]
        if not chosen.sdist_only:
            built = twice(lambda place: wheel(tools, archive, place), folder / "wheel")
            made += [built, list_parts(tools, built, folder)]
        write_sums(made)
    if chosen.tag:
        git("tag", "--annotate", f"v{VERSION}", "--message", f"segpack {VERSION}")


if __name__ == "__main__":
    main()
