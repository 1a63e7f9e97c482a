"""Commands on a finished pack: verify, repair, compare, stage, push, pull, list generations and roll back.

A generation is one version of a pack. `generations` lists those that a pack has kept, and makes an older one current by
one rename. `garbage` deletes the files that no kept generation uses: manifests first, then tables, then shards, so that
a kill in between leaves no manifest whose files are gone.

`stage` copies the current generation to a local disk or into memory. The copy is a pack, too. A data set that reads it
holds a shared lock (flock) on the manifest of its generation, so that staging the next one does not delete it.
`staged_copies` finds and drops copies.

`stored` shows a pack in a bucket as a folder, so that most commands take a URL. `uploads` finds what was not finished
there.

`inspect_row` finds everything that is known of a row, and `raw_rows` builds one again from its raw files.

`push` copies it to a bucket, the Hugging Face Hub or another folder, or back, by `copy_shards`: both sides have the
same generation then. `hub_commits` is the Hub as a target.
"""
