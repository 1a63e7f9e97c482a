"""A contender of bench.writers in a process of its own.

    python -m bench.writing write|checksums JOB ANSWER

JOB is a Job as JSON, ANSWER the file that what comes of it is written to. Processes that are spawned import this file
anew, the packer's workers too, so what it needs is imported when it is known to be the first.
"""

from __future__ import annotations

import json
import sys
import warnings
from dataclasses import asdict
from importlib import import_module
from pathlib import Path


def main() -> None:
    act, job, answer = sys.argv[1:]
    jobs = import_module("bench.jobs")
    warnings.simplefilter("ignore")
    Path(answer).write_text(json.dumps(getattr(jobs, act)(jobs.Job.from_text(job)), default=asdict))


if __name__ == "__main__":
    main()
