"""A page about a pack on this machine: browse its rows, filter and sort them, look at one closely.

`RowIndex` merges the counts of all rows into one mapped file, and `FindRows` answers a `Query` with row numbers.
`Layers` turns rows into what a browser draws: thumbnails, pictures, and labels as numbers that it colours by a palette.
`app` gives them addresses, `Guard` refuses requests that are not from the page, and `serve` runs it all.
"""
