"""Diagnosis of a training loop: the time of its steps, the bottleneck, and what to change.

`watch` wraps one loader in a training script; `session` watches every loader of a program that was started by `packer
diagnose`. Both time each step (`steps`) and sample the use of the machine (`samples`, from the kernel's `counters`),
in memory that does not grow (`timeline`). A `record` holds these numbers. `verdict` and `report` are made from a record
alone: the bottleneck, the evidence and advice, and a page or JSON.
"""
