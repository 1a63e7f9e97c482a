"""Read the annotation files of labelling tools, and paint them: each object is a mask, all masks are a label.

A module of a format, such as `labelme`, reads files into `AnnotatedPicture`: `annotation` has the words. Each of its
shapes paints itself as the tool of its format does, so a polygon of COCO is another class than one of LabelMe. `paint`
puts the objects of a picture on one canvas, counts what is lost, and makes the label, the ids and the overlapping
classes of it. `formats` finds the module of a file. Nothing
here opens a file or knows a source: `packer/sources/annotated/annotated.py` does.
"""
