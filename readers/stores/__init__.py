"""Stores: a folder or a bucket that holds a pack, behind the seven functions of `store.Store`.

A pack in a store has the names that it has in a folder: `manifest.json`, `generations/000001.json`, `shards/…`.
`open_store` opens a URL or a path: `folder_store` is a folder of this machine, or of any mount, `object_store` a bucket
of S3, Google or Azure, by obstore, `hub_store` a data set of the Hugging Face Hub, to read from, and `fsspec_store`
whatever else fsspec knows. These libraries are imported when a store needs them. Credentials come from the
environment alone.

`cache` is a folder of this machine with whole shards of packs in stores. `fetch` brings a shard there and
checks it, `evict` keeps the byte budget, `ahead` fetches what coming batches need, and `helper` fetches for forked
processes. `packer stage` copies by `fetch`, too. `checksums` checks receipts and files.
"""
