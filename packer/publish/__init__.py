"""Publish a generation: files appear complete or not at all, under a lock.

A build holds OUT/.lock with flock. The file names the owner's host, process and start. The kernel releases the lock
when its owner ends, so it is never stale. A second builder exits with 75 at once. The owner of the lock removes
`.partial-*` folders of processes of this machine that have ended, and of all machines those that are a day old.

Shards come first, then their table, then the manifest, each by a rename. Until the last rename the old generation is
current. Published files never change.
"""
