"""Compare a pack of the recipe nnunet with what nnU-Net writes itself, in the environment of the recipe.

python tests/nnunet_checks.py PACK FOLDER
"""

from __future__ import annotations

import json
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

nnunet: Any = import_module("nnunet")
Theirs: Any = import_module("nnunetv2.training.dataloading.nnunet_dataset").nnUNetDatasetBlosc2


def plain(properties: dict[str, Any]) -> Any:
    """Return properties without the places of classes, with lists for arrays and tuples."""
    rest = {name: fact for name, fact in properties.items() if name not in ("class_locations", "size")}
    return json.loads(json.dumps(rest, default=lambda array: array.tolist()))


def compare(pack: Path, folder: Path) -> dict[str, Any]:
    """Let nnU-Net preprocess each case, and compare what the pack has. Return what was found."""
    cases, packed = nnunet.Cases(pack), nnunet.PackedCases(str(pack))
    found: dict[str, Any] = {"cases": len(packed.identifiers), "voxels": 0, "differ": [], "numbers": set()}
    folder.mkdir()
    for case in packed.identifiers:
        files, preprocessor = cases.files[case], cases.settings.preprocessor_class(verbose=False)
        given = files["images"], files["label"], cases.plans, cases.settings, cases.dataset
        preprocessor.run_case_save(str(folder / case), *given)
        theirs, ours = Theirs(str(folder), [case]).load_case(case), packed.load_case(case)
        for their_field, our_field in zip(theirs[:2], ours[:2], strict=True):
            parts = (slice(None), slice(2, 9), slice(3, 17), slice(1, 30))
            for part in (slice(None), parts):
                same = np.array_equal(their_field[part], our_field[part]) and their_field.shape == our_field.shape
                if not same or their_field[part].dtype != our_field[part].dtype:
                    found["differ"].append(case)
        places, our_places = (properties["class_locations"] for properties in (theirs[3], ours[3]))
        same = places.keys() == our_places.keys()
        if not same or not all(np.array_equal(places[key], our_places[key]) for key in places):
            found["differ"].append(f"{case}: places")
        if plain(theirs[3]) != plain(ours[3]):
            found["differ"].append(f"{case}: properties")
        found["voxels"] += int(np.prod(theirs[0].shape))
        found["numbers"] |= set(np.unique(ours[1][:]).tolist())
    return {**found, "numbers": sorted(found["numbers"]), "refused": refused(pack, packed)}


def refused(pack: Path, packed: Any) -> str:
    """Return why properties of another size are not taken."""
    case, path = packed.identifiers[0], nnunet.properties_of(pack, packed.identifiers[0])
    right = nnunet.read_properties(path)
    nnunet.write_properties(path, {**right, "size": [1, 2, 3]})
    try:
        packed.load_case(case)
    except ValueError as error:
        return str(error)
    finally:
        nnunet.write_properties(path, right)
    return ""


if __name__ == "__main__":
    print(json.dumps(compare(Path(sys.argv[1]), Path(sys.argv[2]))))
