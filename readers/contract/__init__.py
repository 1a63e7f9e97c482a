"""The format of a packed data set, on which `packer` and `readers` agree: numpy and the standard library only.

FORMAT.md describes the bytes. `manifest` is one generation of a pack, with its `classes`, `fields` and `statistics`.
`shard_table` lists the shards of a generation, and a `receipt` describes one shard. `tiles` and `onehot` convert tiles
and labels. All documents are read with `json_entry`: nothing on disk is trusted until it is checked, and every problem
of a document is reported together. `errors` has the exceptions, `files` the checks of files,
`mapped` their memory maps.
"""

VERSION = "0.2.0"
"""The version of the distribution."""
