"""Inspect an unknown raw folder and propose a configuration.

`probe` finds the pairs, by a known layout or by templates that it suggests; `volumes` knows pairs whose rows have three
sides. `survey` reads the headers of all pairs and decodes a sample in workers. The labels are then read in the first of
these ways that fits:

1. the class table that the user names, or that has a usual name in the folder
2. a preset whose templates and values fit (`match_presets`)
3. any other class table in the folder that has all values of the sample
4. a preset whose colours fit
5. a guess from the pixels (`guess_labels`, with the counts of `label_pixels`)

The result is a configuration for `packer build`, and the questions that only the user can decide. `trial` plans a build
with the configuration and decodes the sample by it, so that the refusals of a build are known. `rivals` finds other
files that could be the labels or the images. Questions about the meaning of labels are written as `decide` into the
configuration, and a build refuses it until they are answered.
"""
