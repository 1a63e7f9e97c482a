"""Stores: a folder or a bucket that holds a pack, behind the seven functions of `store.Store`.

A pack in a store has the names that it has in a folder: `manifest.json`, `generations/000001.json`, `shards/…`.
`folder_store` is a folder of this machine, or of any mount.
"""
