"""Stores: a folder or a bucket that holds a pack, behind the seven functions of `store.Store`.

A pack in a store has the names that it has in a folder: `manifest.json`, `generations/000001.json`, `shards/…`.
`open_store` opens a URL or a path: `folder_store` is a folder of this machine, or of any mount, `object_store` a bucket
of S3, Google or Azure, by obstore, and `fsspec_store` whatever else fsspec knows. Both libraries are imported when a
store needs them. Credentials come from the environment alone.
"""
