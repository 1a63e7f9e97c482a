"""Measure how fast the loaders read a pack on this machine.

`run_bench` reads rows as the first epoch of a training does (the first pass). Then it runs trials in rounds: in each
round a loop that only copies the rows of the pack (`copy_loop`), then every loader with its settings, for the same
time. The copy loop of the same round is the upper limit, so that other work on the machine slows down both.

`request` holds the options of the user. `settings` lists the loaders to try, `workload` selects those that fit into
memory, `loaders` runs them, and `recommend` picks the cheapest one that is fast enough. Only `run`, `loaders` and
`encodings` import PyTorch, which takes a second.
"""
