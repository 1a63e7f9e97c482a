"""Benches: how fast packs are built and read, on this machine, next to what the machine allows and to other libraries.

`building` is compared with `decode_loop`, which decodes and writes nothing; `reading` with a loop that copies memory;
`cold` with the disk; `staging` with `cp`. `building_peers` and `reading_peers` compare with other libraries, each of
which has a file in `libraries`. In all benches the candidates take turns in rounds, and prove that they did the work.
"""
