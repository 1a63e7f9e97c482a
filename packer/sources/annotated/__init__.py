"""A folder of pictures, whose labels are painted from files of annotations.

`annotated` is the source with a file for each picture, and `indexed` the one with files of many pictures. A build that
paints imports `annotated_rows` or `indexed_rows`, which find the rows; no other build does. `annotation_files` and
`find_indexed` find the files. Because of `known_sizes` a plan reads no file twice.
"""
