"""Drills: what goes wrong on real machines, done on purpose, again and again.

`kills`, `powerloss` and `fulldisk` stop a command at every call that changes the disk, with the help of `interpose`;
`crash_cases` are the commands, and the check of what they leave. `worker_crashes`, `signals` and `concurrent_builds`
work on running builds. `damaged_packs`, `damaged_pictures`,
`damaged_arrays` and `fuzz` change bytes. `histories` and `soak` run many
nightly builds. `kernels` runs the C code under sanitizers. Each has a short form in the tests.
"""
