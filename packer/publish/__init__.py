"""Publish a generation: files appear complete or not at all, under a lock.

A build holds OUT/.lock with flock. The file names the owner's host, process and start. The kernel releases the lock
when its owner ends, so it is never stale. A second builder exits with 75 at once. The owner of the lock removes
what is named `.partial-*` of processes of this machine that have ended, and of all machines what is a day old.

Shards come first: a worker brings their bytes to the disk, and `sync_shards` the names of all of them, once. Then comes
their table. Creating `generations/N.json` claims number N. The manifest is swapped last, and
only for the one that was read at the start: until then the old generation is current. Published files never change.
`OUT` is a folder or a bucket, behind readers/stores. `bucket` has a `shadow` of one on this machine, which looks like a
folder; `outbox` sends shards there. `claim` writes without believing what a store replies.
`store_probe` finds stores that ignore conditions; `lock_object` is a lock for these.
"""
