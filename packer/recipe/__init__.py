"""Describe a pack before it is built: the recipe, the pieces, and the shards that they are cut into.

A `Recipe` is everything that decides the bytes, besides the raw files. A `RowRef` is a row of a `Source` before it is
loaded; a `RefTable` holds all of them as one text. A `Piece` is what becomes one row of the pack: such a row, or a tile
of it, whose key, such as `a@000000+000448of2048x4096`, has its position and the size of the picture. `cut` divides the
pieces of a split into shards. A `ShardSpec` is the pieces of one shard and the recipe, as JSON: any worker on any
machine makes the same bytes from it and the raw files. A `PlanFolder` has the specs of a whole build as files.
"""
