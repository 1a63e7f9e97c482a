"""The randomness of each shuffle, and the shards that a rank reads: computed from the orders, alike on every machine.

    tools/run bench.orders [--rows 131072] [--shard 128] [--ranks 8] [--batch 32]

A window has 8 blocks, and a block the rows of a shard. `shards of a rank` are those that a rank reads in an epoch. Two
rows that are stored next to each other come `apart` steps of the training from each other: the median, and the most.
They `meet` in a batch of all ranks, or in that of one rank, so many times as often as two rows by chance.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from program import parser
from tables import aligned

from readers import Order, Window

BLOCKS = 8


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--rows", type=int, default=1 << 17, help="default: %(default)s")
    options.add_argument("--shard", type=int, default=128, help="rows of a shard; default: %(default)s")
    options.add_argument("--ranks", type=int, default=8, help="default: %(default)s")
    options.add_argument("--batch", type=int, default=32, help="rows of a rank's batch; default: %(default)s")
    chosen = options.parse_args()
    print("\n".join(table(chosen.rows, chosen.shard, chosen.ranks, chosen.batch)))


def table(rows: int, shard: int, ranks: int, batch: int) -> list[str]:
    """Return the table of all shuffles."""
    shuffles: tuple[bool | Window, ...] = (True, Window(shard, BLOCKS), Window(shard, BLOCKS, apart=True))
    head = ("shuffle", "shards of a rank", "apart: median", "most", "meet: all ranks", "one rank")
    return list(aligned([head, *(line(rows, shard, ranks, batch, shuffle) for shuffle in shuffles)]))


def line(rows: int, shard: int, ranks: int, batch: int, shuffle: bool | Window) -> tuple[str, ...]:
    """Measure one epoch of one shuffle."""
    passes = [received(rows, ranks, rank, shuffle) for rank in range(ranks)]
    shards = max(len(np.unique(mine // shard)) for mine in passes)
    step, rank = np.empty(rows, np.int64), np.empty(rows, np.int64)
    for number, mine in enumerate(passes):
        step[mine], rank[mine] = np.arange(len(mine)) // batch, number
    steps, same_rank = np.abs(np.diff(step)), np.diff(rank) == 0
    together, in_one = (steps == 0).mean(), ((steps == 0) & same_rank).mean()
    chance = (ranks * batch - 1) / (rows - 1), (batch - 1) / (rows - 1)
    ratios = (f"{together / chance[0]:.1f}", f"{in_one / chance[1]:.1f}")
    return (repr(shuffle), f"{shards} of {-(-rows // shard)}", f"{np.median(steps):.0f}", str(steps.max()), *ratios)


def received(rows: int, ranks: int, rank: int, shuffle: bool | Window) -> NDArray[np.int64]:
    """Return the rows of a rank in its order; each row comes once."""
    epoch = Order(rows, shuffle=shuffle, seed=1, rank=rank, world_size=ranks, pad=False).coming()
    return epoch.take(0, epoch.count)


if __name__ == "__main__":
    main()
