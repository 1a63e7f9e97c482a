"""Volumes: NIfTI as slices or as whole volumes, and TIFFs whose pages are slices.

`nifti` is the source of slices, `nifti_whole` the source of volumes; `nifti_volume` reads a file, and `volume_rules`
says how it is turned and scaled. The source of a folder of files reads pages by `tiff_volume`.
"""
