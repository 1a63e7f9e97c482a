"""Run the pipeline of the guide to clusters in a real Airflow, and kill a part of the plan once.

    tools/run drills.airflow [--airflow ENV/bin/airflow] [--folder FOLDER] [--pairs 3000]

Airflow 3 may be in an environment of its own: `python -m venv ENV; ENV/bin/pip install apache-airflow`. All that it
writes is in a folder that the drill deletes. Takes some two minutes. Exits 1 if a promise is broken.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from program import REPO, parser
from scenes.camera import make_linked_streets

from drills.commands import must
from drills.processes import builder_of
from drills.published import same
from drills.slurm import OPTIONS
from drills.tally import Tally, finish
from drills.waiting import wait

PAGE = REPO / "docs" / "guide" / "cluster.md"
PARTS, KILLED = 3, "2/3"
LONG = 600.0


def pipeline(folder: Path) -> str:
    """Return the code of the guide, with the folders, the options and the parts of this drill."""
    code = PAGE.read_text().partition("```python\n")[2].partition("```")[0]
    code = code.replace("PARTS = 16", f"PARTS = {PARTS}").replace("--size 512x512", " ".join(OPTIONS))
    return code.replace("/data/", f"{folder}/")


def drill(folder: Path, airflow: str, pairs: int) -> Tally:
    """Build a plan by the pipeline and by one process."""
    raw, tally = folder / "raw", Tally()
    make_linked_streets(raw, pairs)
    (folder / "dags").mkdir()
    (folder / "dags" / "segpack_parts.py").write_text(pipeline(folder))
    variables = os.environ | {
        "AIRFLOW_HOME": str(folder),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",  # of `packer`
    }
    subprocess.run([airflow, "db", "migrate"], env=variables, check=True, stdout=subprocess.DEVNULL)
    with (folder / "log").open("w") as log:
        run = subprocess.Popen([airflow, "dags", "test", "segpack_parts"], env=variables, stdout=log, stderr=log)
    wait(LONG, lambda: has_begun(folder) or run.poll() is not None, f"part {KILLED} has a shard")
    number = builder_of(KILLED, folder / "out")
    if number is None:
        raise RuntimeError(f"part {KILLED} was not killed:\n{(folder / 'log').read_text()}")
    os.kill(number, signal.SIGKILL)
    code, text = run.wait(LONG), (folder / "log").read_text()
    tally.demand(code == 0, f"airflow dags test: exit code {code}:\n{text}")
    counts = re.findall(r"part (\S+), \d+ shards? built, (\d+) were there", text)
    tally.demand([part for part, _ in counts] == ["1/3", "3/3", KILLED], f"the parts were built as {counts}")
    tally.demand("exit code -9" in text, "no part was killed")
    must("build", "--quiet", *OPTIONS, raw, folder / "whole")
    tally.demand(same(folder / "out", folder / "whole"), "the pack differs from that of packer build")
    tally.counts.update({f"{part} were there": int(found) for part, found in counts})
    return tally


def has_begun(folder: Path) -> bool:
    """Return whether the part to kill runs and has a shard."""
    numbers = [int(path.name.partition("-")[0]) for path in folder.glob("out/tickets/*/*-*-*")]
    return builder_of(KILLED, folder / "out") is not None and any(number % PARTS == 1 for number in numbers)


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--airflow", default="airflow", help="the command of Airflow, if it is not on the PATH")
    options.add_argument("--folder", type=Path, help="where the folder of the drill is made")
    options.add_argument("--pairs", type=int, default=3000)
    given = options.parse_args()
    airflow = shutil.which(given.airflow)
    if airflow is None:
        sys.exit(f"{given.airflow}: not found; pip install apache-airflow, or name its command by --airflow")
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        finish({"airflow": drill(Path(folder), airflow, given.pairs)})


if __name__ == "__main__":
    main()
