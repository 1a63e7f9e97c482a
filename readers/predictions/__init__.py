"""Write predictions with the place of their row, as files that other programs open.

write    `write_prediction` and `PredictionFile`: a whole prediction, or one that comes in parts
nifti    the bytes of a NIfTI file
geotiff  the bytes of a GeoTIFF
"""
