"""Class tables: the values and colours of each class, read from the file formats that people use.

`load.load_class_table` finds the table and picks a parser by the suffix: `from_toml`, `from_json` or `from_text`. Each
parser turns its file into `class_row.ClassRow`s. The checks of names, values, colours and train ids stand in
`class_row`, so that the same mistake gives the same message in every format. `merge.merge_rows` joins the rows of one
class, and raises one error with every problem of the file. `ignore.with_ignored` then moves classes, values and colours
to the ignored ones, for --ignore and for `ignore` in TOML.
"""
