"""Make the plan of a build: everything that is known before a picture is packed.

`make_plan` is a chain. Each step takes values and returns a value; an InputError of one step does not end the others,
and all are raised together, by their cause (`problems`):

    request           settings          -> Request(rows, fields, shape, store, judgement, running)
    count_labels      rows, pool        -> pixels of each label; only for --split-exact
    find_rows         rows, pixels      -> FoundRows; `list_rows` for other sources than folders
    measure_rows      found, pool       -> FoundRows; only for functions that give rows without sizes
    painted_classes   found, fields     -> FoundRows; only for labels that are painted
    plan_fields       found, fields     -> PlannedFields: class tables, forms, encodings
    check_heads       found, fields     -> CheckedHeads: sizes and bad rows; the only reader of headers
    choose_shape      found, heads      -> Geometry; sizes conflict here and nowhere else
    inspect_sample    all of these      -> InspectedSample: bad rows, palettes, labels without a class table

`reuse` finds the rows and shards that an earlier build has made. The result is a `Plan`: shards to build, shards to
reuse, bad pairs, bytes, free disk. Building, `--dry-run`, `packer diff` and `packer repair` all start from it.
`write_plan` writes it as files, for other machines, and `planned_files` reads them. `plan_row` plans a single row
again, without a search.
"""
