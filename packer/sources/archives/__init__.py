"""Files with many pictures in each: tars, LMDBs, records and tables.

`archive` is the base class. `byte_ranges` is the base class of formats whose pictures are ranges of bytes, and `tables`
is the base class of formats that Arrow reads. `tar`, `tf_example` and `recordio_records` read the bytes of a format.
"""
