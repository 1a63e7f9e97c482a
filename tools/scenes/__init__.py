"""All pictures that the programs of this folder make.

`draw.draw_scene` draws a street with an exact label: `street` is the camera and the polygons, `props` the houses,
trees, people and cars. `camera` makes raw folders of such streets at a camera's size, `squares` at 512x512. `tiny` and
`noise` make raw folders that cost next to nothing, for drills and for benches of everything around the pixels.
`pictures` reads and writes files.
"""
