"""Make the plan of a build: everything that is known before a picture is packed.

`make_plan` finds the rows of a source, reads the headers of all that are not known from the last build, decodes a
sample in workers (`check_rows`, `sample`, `check_labels`, `palettes`), cuts the rows into shards and finds the shards
that exist already (`reuse`). An error does not end the checks: all errors are raised together, by their cause
(`problems`). The result is a `Plan`: shards to build, shards to reuse, bad pairs, bytes, free disk. Building, `--dry-
run`, `packer diff` and `packer repair` all start from it. `write_plan` writes it as files, for other machines.
`plan_row` plans a single row again, without a search.
"""
