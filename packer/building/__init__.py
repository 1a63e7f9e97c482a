"""Build a pack: check, lock, build shards, judge rejects, publish.

`run_build` does all of it on this machine, or `on_cluster`. Without either, `plan_build` writes the plan as files,
`plan_parts` builds a part of its shards on any machine, in any order and any number of times, and `commit_plan` takes
the lock and publishes when every shard is there. All end in `finish`, where `check_result` decides whether the result
may be published.
"""

from packer.building.run_build import build, build_from, build_pack, built_here, lock_if_there
from packer.building.summary import Summary

__all__ = ["Summary", "build", "build_from", "build_pack", "built_here", "lock_if_there"]
