"""Volumes: files of scans as slices or as whole volumes, and TIFFs whose pages are slices.

`volume_slices` is the source of slices, `whole_volumes` the source of volumes. Each format has a file that fills a
`VolumeHeader` and says where the voxels are; `formats` knows them all, and `volume` turns and reads any. `volume_rules`
says how volumes are turned and scaled. The source of a folder of files reads pages by `tiff_volume`.
"""
