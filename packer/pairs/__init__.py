"""Find the pairs of a raw folder: each image with its label, its split and its key.

`find.find_pairs` is the way in. It lists the `files`; `search_files` follows the `pairing_rules` in one of four ways:

- `layouts` and `match`: two `template`s, known or given with --image and --label, capture the split and the key of
  every path. An image and a label with the same captures are a pair. `folder_names` matches the usual templates with
  whole folders; `name_suffixes` finds suffixes such as `_L` in a known layout.
- `split_lists` and `list_lines`: text files name the members of each split, by two paths or by one name per line. Names
  are looked up with the help of `paths`, because lists often contain paths of another machine.
- `pairs_csv`: a CSV or TSV names the image and the label of every pair.
- `draw_splits`: --split draws the splits of pairs that have none, by `split_by_hash` or `split_exact`.

Every search returns `candidates`, which collect all problems of a folder so that one error reports them together.
If nothing fits, `hints` describes the folder, with templates from `suggest`, which compares names by `differences`.
"""
