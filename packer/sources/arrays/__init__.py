"""An array of all images and an array of all labels: HDF5, `.npy`, `.pt`, Zarr and N5.

`stacked` is the base class. `stack_form` finds out which axis is which, `plain_array` reads numbers by their offset.
`kept_rows` keeps what was decompressed.
"""
