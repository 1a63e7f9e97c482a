"""Build a pack: check, lock, build shards, judge rejects, publish.

`build` does all of it on this machine. On several, `plan_files` writes the plan as files, `share` builds a part of its
shards on any machine, in any order and any number of times, and `commit` takes the lock and publishes, when every shard
is there. `judge` decides for both whether the result may be published.
"""

from packer.build.build import Summary, build, build_from, build_pack, build_plan, lock_if_there

__all__ = ["Summary", "build", "build_from", "build_pack", "build_plan", "lock_if_there"]
