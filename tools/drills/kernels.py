"""Run the kernels under AddressSanitizer and UndefinedBehaviorSanitizer with random inputs, next to their stand-ins.

    tools/run drills.kernels [--count 10000000] [--seconds 600] [--kernel gather …]

Every kernel is compiled again with the sanitizers. It runs in processes of its own, with AVX2 and without, on arrays of
exact sizes, so that a byte beyond an array is found. Its results must be those of the Python code that stands in for
it, and gaps between lines must keep their bytes. `drills.kernel_cases` makes the inputs. Exits 1 if anything was found.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from program import REPO, command, parser
from tables import line

from drills.kernel_cases import CASES, FOLDER
from readers.contract.kernels import VARIABLE

SANITIZERS = "-fsanitize=address,undefined"
BATCH = 20_000
"""Cases of one process."""
WIDTHS = (-10, -8, 12, 8)


def main() -> None:
    options = parser(__doc__)
    options.add_argument(
        "--count", type=int, default=10_000_000, help="cases of each kernel, half of them without AVX2"
    )
    options.add_argument("--seconds", type=float, default=600, help="the most seconds for each kernel")
    options.add_argument("--kernel", action="append", choices=tuple(CASES), help="only this; may be repeated")
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        compile_kernels(Path(temporary))
        print(line(("kernel", "CPU", "cases", "found"), WIDTHS))
        found = sum(
            drill(Path(temporary), name, form, chosen.count // 2, chosen.seconds / 2)
            for name in chosen.kernel or CASES
            for form in ("AVX2", "plain")
        )
    sys.exit(1 if found else 0)


def compile_kernels(folder: Path) -> None:
    """Compile every kernel with the sanitizers, into a folder of its own."""
    flags = f"{SANITIZERS} -fno-sanitize-recover=all -fno-omit-frame-pointer -g"
    subprocess.run(
        [sys.executable, "setup.py", "-q", "build_ext", "--build-lib", folder, "--build-temp", folder / "objects"],
        cwd=REPO,
        check=True,
        env={**os.environ, "CFLAGS": flags, "LDFLAGS": SANITIZERS},
    )


def drill(folder: Path, name: str, form: str, count: int, seconds: float) -> int:
    """Run random cases of a kernel; print and return how many processes found something."""
    found = done = 0
    end = time.monotonic() + seconds
    while done < count and time.monotonic() < end and found < 10:
        size = min(BATCH, count - done)
        ended = subprocess.run(
            command("drills.kernel_cases", name, done, size),
            capture_output=True,
            text=True,
            check=False,
            env=environment(folder, form),
        )
        done += size
        if ended.returncode:
            found += 1
            print(ended.stdout + ended.stderr, file=sys.stderr)
    print(line((name, form, done, found), WIDTHS), flush=True)
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
        "ASAN_OPTIONS": "detect_leaks=0",
        "UBSAN_OPTIONS": "print_stacktrace=1",
    }


if __name__ == "__main__":
    main()
