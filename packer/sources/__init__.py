"""Find rows and load them. A kind of source is a class; the base class of all is in `packer/recipe/source.py`.

| folder | rows come from |
|---|---|
| `files` | a folder of files, on this machine or in a store |
| `annotated` | a folder of pictures, and files from which labels are painted |
| `archives` | files with many pictures in each: tars, LMDBs, records, tables |
| `arrays` | an array of all images and one of all labels: HDF5, `.npy`, `.pt`, Zarr, N5 |
| `volumes` | scans: NIfTI, MetaImage, NRRD, DICOM; the pages of TIFFs in a folder of files |

A `pack` is a source, too: `pack_facts` and `pack_lines` belong to it. `rows` are what a function of the user returns:
`functions` sends it to the workers, `row_functions` calls it, `row_keys` checks the keys.

`containers` lists the kinds that `--from` knows by their content; `container` is their interface. `plan/find_rows.py`
and `plan/list_rows.py` find all rows. A worker gets a source as a text and opens it with `reopen`; `portable` makes
that text fit for other machines. Many kinds use `ask_all`, `file_states` and `given_fields`, and `library_process`,
which opens what may crash.
"""
