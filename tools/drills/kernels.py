"""Run the kernels under AddressSanitizer and UndefinedBehaviorSanitizer with random calls, whose results are known.

    tools/run drills.kernels [--count 10000000] [--seconds 600] [--kernel gather …]

Every kernel is compiled again with the sanitizers. It runs in processes of its own, with AVX2 and without, on arrays in
memory of exactly their size, so that a byte beyond an array is found. The results must be those of a plain loop in C,
and gaps between lines and inputs must keep their bytes. Each sixth call is wrong: another number of axes, byte order or
item, memory that may only be read or is shared, lines that run backwards or overlap, empty arrays of enormous length.
A wrong call must be refused and write nothing. One allocation of 997 fails. `windows` and `tiles` are whole batches,
`png` whole and damaged files next to OpenCV, `threads` several calls with the same input. `drills.kernel_cases` makes
them. Exits 1 if anything was found.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path

from program import REPO, command, parser
from tables import line

from drills.kernel_cases import CASES, FOLDER
from readers.contract.kernels import VARIABLE

SANITIZERS = "-fsanitize=address,undefined"
SOURCES = Path(__file__).with_name("cases")
PAST_CACHES = 4096
"""Bytes from which on the drill's kernels store past the caches: small arrays are faster to make and to compare."""
BATCH = 250_000
"""Cases of one process."""
WIDTHS = (-10, -8, 12, 10, 8)


def main() -> None:
    options = parser(__doc__)
    options.add_argument(
        "--count", type=int, default=10_000_000, help="cases of each kernel, half of them without AVX2"
    )
    options.add_argument("--first", type=int, default=0, help="the number of the first case; it decides all of them")
    options.add_argument("--seconds", type=float, default=600, help="the most seconds for each kernel")
    options.add_argument("--kernel", action="append", choices=CASES, help="only this; may be repeated")
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        compile_kernels(Path(temporary))
        print(line(("kernel", "CPU", "cases", "a second", "found"), WIDTHS), flush=True)
        found = sum(
            drill(Path(temporary), name, form, chosen.first, chosen.count // 2, chosen.seconds / 2)
            for name in chosen.kernel or CASES
            for form in ("AVX2", "plain")
        )
    sys.exit(1 if found else 0)


def compile_kernels(folder: Path) -> None:
    """Compile every kernel with the sanitizers into a folder of its own, and the cases without."""
    flags = f"{SANITIZERS} -fno-sanitize-recover=all -fno-omit-frame-pointer -g -DLARGE={PAST_CACHES}"
    subprocess.run(
        [
            sys.executable,
            "setup.py",
            "-q",
            "build_ext",
            "--parallel",
            "2",
            "--build-lib",
            folder,
            "--build-temp",
            folder / "objects",
        ],
        cwd=REPO,
        check=True,
        env={**os.environ, "CFLAGS": f"{flags} -include {SOURCES / 'failing.h'}", "LDFLAGS": SANITIZERS},
    )
    include = f"-I{sysconfig.get_path('include')}"
    sources = sorted(map(str, SOURCES.glob("*.c")))
    command_line = ["gcc", "-shared", "-fPIC", "-O2", "-Wall", include, *sources, "-o", str(folder / "cases.so")]
    subprocess.run(command_line, check=True)


def drill(folder: Path, name: str, form: str, first: int, count: int, seconds: float) -> int:
    """Run random cases of a kernel; print and return how many processes found something."""
    found = done = 0
    started = time.monotonic()
    while done < count and (left := started + seconds - time.monotonic()) > 0 and found < 10:
        ended = subprocess.run(
            command("drills.kernel_cases", first + done, min(BATCH, count - done), left, name),
            capture_output=True,
            text=True,
            check=False,
            env=environment(folder, form),
        )
        if ended.returncode:
            found += 1
            print(ended.stdout + ended.stderr, file=sys.stderr)
        done += min(BATCH, count - done) if ended.returncode else int(ended.stdout)
    rate = round(done / (time.monotonic() - started))
    print(line((name, form, done, rate, found), WIDTHS), flush=True)
    return found


def environment(folder: Path, form: str) -> dict[str, str]:
    """Return the variables of a process whose kernels are those in the folder."""
    sanitizer = subprocess.run(
        ["gcc", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True
    ).stdout.strip()
    return {
        **os.environ,
        FOLDER: str(folder),
        VARIABLE: "plain" if form == "plain" else "1",
        "LD_PRELOAD": sanitizer,
        "PYTHONMALLOC": "malloc",
        "ASAN_OPTIONS": "detect_leaks=0:quarantine_size_mb=16:allocator_may_return_null=1",
        "UBSAN_OPTIONS": "print_stacktrace=1",
    }
