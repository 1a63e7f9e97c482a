"""Run jobs that may crash or hang: read headers, inspect pairs, build shards.

A pool runs jobs. `Supervisor` runs them in worker processes, `InProcess` in this process; the results are the same.
The same pool inspects the label sample and builds the shards, so the workers that answered the first do the second.

Each worker process builds a shard of its own, the largest shards first. When none is left to hand out, those that still
decode get a thread for each idle core, so no core waits for the last shard, and a small data set uses every core, too.
A worker reports when its shard is decoded and it begins to write. Another worker then starts decoding, so no core waits
for the disk. Memory is one shard, at most twice `--shard-size`, for each process that decodes, and for those that
write: a quarter as many, at least one.

Workers are forked from a server process that has imported what they need and has no threads: 12 ms a worker instead of
400 ms. A command starts the server before it imports anything itself, so both import at the same time. Parent and
workers exchange JSON (messages.py). A worker gets the text of the source before its first task. Each thread of a worker
records in shared memory which pair it works on (heartbeat.py). The supervisor sees a worker exit, kills one whose pair
takes longer than `--task-timeout`, and replaces both. A worker that is alive when the server ends goes on, and the next
one starts another server. A worker that runs out of memory exits at its pair and is handled like a crash. A worker that
gives no sign of life for 300 s, for example because a signal stopped it, is replaced, too.

After a crash, all pairs of the shard are decoded in one thread, and decoding continues behind each pair at which a
worker crashes. These pairs are then tried alone. A pair at which two workers crashed while they worked on nothing else
becomes a reject (jobs.py). The shard is then built without it, so the reason is the same for any number of workers. If
no pair is to blame, the build ends after three more tries.
"""
