"""Build a pack: check, lock, build shards, judge rejects, publish.

`whole` does all of it on this machine, or on an engine. Without one, `plan_files` writes the plan as files, `share`
builds a part of its shards on any machine, in any order and any number of times, and `commit` takes the lock and
publishes when every shard is there. All end in `finish`, where `judge` decides whether the result may be published.
"""

from packer.build.summary import Summary
from packer.build.whole import build, build_from, build_pack, built_here, lock_if_there

__all__ = ["Summary", "build", "build_from", "build_pack", "built_here", "lock_if_there"]
