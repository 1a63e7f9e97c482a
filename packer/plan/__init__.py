"""Make the plan of a build: everything that is known before a picture is packed.

`make_plan` finds the pairs, reads the headers of all that are not known from the last build, decodes a sample of the
labels in workers (`sample`, `check_labels`, `palettes`), cuts the pairs into shards and finds the shards that exist
already (`reuse`). The result is a `Plan`: shards to build, shards to reuse, bad pairs, bytes, free disk. Building,
`--dry-run`, `packer diff` and `packer repair` all start from it.
"""
