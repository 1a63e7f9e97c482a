"""Decode TIFF. This is done here, because libtiff fills damaged blocks in silence, and other programs do the same.

`directory` reads the tags, `colours` says which pictures they may describe, `blocks` finds the strips and tiles,
`compressions` unpacks them, and `picture` puts them together.
"""
