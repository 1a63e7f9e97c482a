"""A folder of files, on this machine or in a store, as a source.

`folder` is the source. `file_lines` opens files that are too large for memory, `files_below` refuses paths outside of
the folder, `slides` finds slides among the files. `objects` is the same folder in a store: `read_ahead` reads objects
before a decoder needs them, `ranged_file` reads their heads.
"""
