"""Many builders and many readers of one pack: the drill in short, and that it sees what it is for."""

from __future__ import annotations

from pathlib import Path

import pytest
from drills.commands import must
from drills.concurrent_builds import race, republish
from drills.versions import LASTING, make_version, read_version, write_pair
from scenes.tiny import SHARDS


@pytest.mark.long
def test_builds_at_once_take_turns_and_the_others_name_the_winner(tmp_path: Path) -> None:
    """By default `test_four_builders_at_once_give_one_whole_pack` runs."""
    tally = race(tmp_path, "npy", builders=4, rounds=2)
    assert tally.broken == []
    assert tally.counts["built"] + tally.counts["refused"] == 8


@pytest.mark.long
@pytest.mark.parametrize("storage", ["npy", "lmdb"])
def test_readers_see_one_version_while_others_are_published(storage: str, tmp_path: Path) -> None:
    tally = republish(tmp_path, storage, publishes=9, readers=1)
    assert tally.broken == []
    assert (tally.counts["builds"], tally.counts["rollbacks"]) == (3, 6)
    assert tally.counts["reads of the first"] > 0


def test_a_mixture_of_versions_is_found(tmp_path: Path) -> None:
    raw = tmp_path / "raw"
    make_version(raw, 300)
    must("build", "--quiet", *SHARDS, raw, tmp_path / "whole")
    assert read_version(tmp_path / "whole") == 300
    write_pair(raw, "train", 301, 1)
    must("build", "--quiet", *SHARDS, raw, tmp_path / "mixed")
    with pytest.raises(ValueError, match="row 1 is of another version than 300"):
        read_version(tmp_path / "mixed")
    for kind in ("images", "masks"):
        (raw / "train" / kind / "1.png").unlink()
    must("build", "--quiet", *SHARDS, raw, tmp_path / "short")
    with pytest.raises(ValueError, match="has 2 rows, and 1 were read"):
        read_version(tmp_path / "short")
    assert (raw / LASTING).is_dir()
