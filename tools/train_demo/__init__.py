"""The same training of a small U-Net on raw files and on the pack that is built from them.

`pipelines` makes batches from both. `comparison` trains both in turns with `training`, and `step_times` measures them.
`report` is the table and the JSON document, `plot` the chart.
"""
