"""Turn decoded pixels into rows: labels into classes, pictures into the stored size, and statistics of a row.

An image is decoded to uint8, or to float32 from 0 to 1, then resized into planes. area.py has the exact mean, OpenCV
does all other scaling. Numbers that are stored unchanged have a way each: `stored_picture`, `nearest`, `valid_mean`.
One `Placement` serves all fields of a row. A label file is decoded by `LabelCodec` to numbers or colours; the class
table gives the class of each that occurs, and the class indices are resized. The codec is the way to read a label file
(`index`, `colour`, `binary`, `ade20k`, `instance`). If a file can be read in two ways, the table must decide between
them, or the build asks.
"""
