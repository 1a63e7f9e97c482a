"""Build a shard: from pieces to rows, arrays and files.

`build_shard` is a pure function of a shard's spec and what its source gives. It loads and decodes all rows in threads,
into arrays that are allocated for the whole shard, and closes the gaps of rejects. The storage format writes the arrays
past the kernel's cache and hashes them at the same time. `kinds` has how each kind of field is decoded, stored and
counted. `RowTable` holds what else is known of the rows. Every file is
synced and renamed, the receipt last, so a shard with a receipt is complete.

A piece is a whole row of the source or a tile of it, and becomes one row. Pieces of the same picture are decoded once.
The name of a shard is a fingerprint of its recipe and of the identities of what was read.

inspect.py decodes a pair before anything is packed, to count the values and colours of its label.

stamps.py remembers, in OUT/stamps, the state of each row, such as size and time of its files. The next build compares
them and reuses the shards whose rows are unchanged, without loading these. Stamps are not part of the pack: without
them a build only takes longer. row_counts.py keeps there, too, what was counted of each row, for who looks at a pack.
"""
