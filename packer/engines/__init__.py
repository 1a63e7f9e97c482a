"""Build the shards of a plan on engines: Dask, Ray, or whatever else runs a function on a text.

An `Engine` takes the text of a `Task` and gives a future with the text of an answer. It never sees pixels, functions of
users or credentials: a task names a shard of a plan folder, and the answer is small (task.py). All texts are JSON, read
with checks.

`build_task` runs in a worker of the engine. It passes the task to a station, a process of ours next to it
(run_station.py), which builds the shard in a worker process that may crash. So a pair that crashes its decoder never
ends a worker of the engine, and the shard has the same reject as in a local build. A station ends when the engine's
worker ends.

`submit_all` keeps twice as many tasks in flight as the engine has slots. A task that failed because of the engine or
its machines is tried again, with growing pauses. A worker is what the engine can avoid: one of Dask, a node of Ray. One
that fails three times in a row gets no more tasks, and its failures do not count against a shard (failing_workers.py).
Errors in data or options, and of all workers, end the build. Shards may be built twice, late or by a worker that was
given up: their bytes are the same, and only the coordinator publishes.
"""
