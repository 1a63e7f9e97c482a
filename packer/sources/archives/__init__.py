"""Files with many pictures in each: tars, LMDBs, records and tables.

`archive` is the base class. Its `archive_files` are on this machine (`files_here`, `named_files`) or in a store
(`files_in_store`, `stored_files`), where `streamed_file`, `ranges_ahead` and `columns_file` read ahead. `byte_ranges`
is the base class of formats whose pictures are ranges of bytes, and `tables` is the base class of formats that Arrow
reads. `tar`, `tf_example`, `recordio_records` and `parquet_footer` read the bytes of a format.
"""
