"""Find rows and load them: one module for each kind of source.

`open_source` is the way in: it finds all rows and refuses keys that no pack can hold. A `folder` of files is the first
source; `packer/pairs` finds its pairs. `objects` are the files of a folder in a store; `read_ahead` reads them before a
decoder needs them, `ranged_file` their heads. A `pack` is the second: its rows are packed again. `rows` are what a
function of the user returns: `functions` sends it to the workers, `row_functions` calls it, `given_fields` checks its
arrays, `row_keys` the keys. `containers` lists the other kinds, which `--from` knows by their content; `container` is
their interface. Those of arrays are `stacked`; `stack_form` finds out which axis is which, and a `library_process`
opens what may crash. An `archive` has many pictures in each of its files, such as the tars of `webdataset`; those of
Arrow are `tables`; `nifti` has slices of volumes. Fields of an `annotated` folder are painted; `annotation_files` finds
their files, `find_indexed` those of many pictures; `annotated_rows` and `indexed_rows` are imported by builds that
paint, and by no others; because of `known_sizes` a plan reads no file twice. A worker gets a source as a text and opens
it with `reopen`. The base class of all is in `packer/recipe/source.py`.
"""
