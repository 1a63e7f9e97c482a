"""Trainers of other libraries: once over raw files with their own loader, once over a pack with our bridge.

A program for each trainer, named after it. It writes the sample scenes as the trainer wants them, builds a pack of
them, and prints a `Comparison` as JSON: the samples of both loaders, the losses and the metric of both trainings.
"""
