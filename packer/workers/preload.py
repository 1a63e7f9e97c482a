"""The import of the fork server: everything that a worker needs, and nothing that Python looks through again."""

import gc

import packer.workers.worker as worker  # noqa: F401

gc.freeze()  # workers share these objects with the server, and the end of the server searches none of them for cycles
