"""MMSegmentation: a pack as a registered data set, and the step of a pipeline that loads its rows.

    custom_imports = dict(imports=["readers.bridges.mmseg"])
    train_pipeline = [dict(type="LoadFromPack"), *train_pipeline[2:]]  # for LoadImageFromFile and LoadAnnotations
    train_dataloader = dict(
        batch_size=4, num_workers=2, sampler=dict(type="InfiniteSampler", shuffle=True),
        dataset=dict(type="PackDataset", data_root="out", split="train", pipeline=train_pipeline),
    )

Pictures of three bands are BGR, as LoadImageFromFile gives them. Ignored pixels have the number 255, which heads and
IoUMetric ignore by default. Names and colours of the classes are in `dataset.metainfo`.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from mmcv.transforms import BaseTransform
from mmseg.datasets import BaseSegDataset
from mmseg.registry import DATASETS, TRANSFORMS

from readers.by_format import open_dataset
from readers.contract.fields import IMAGE, LABEL
from readers.labelled_pictures import open_pictures


@DATASETS.register_module()
class PackDataset(BaseSegDataset):
    """The rows of a split. `options` go to `open_dataset`, such as dict(fold=0), `settings` to BaseSegDataset.

    In a pack without labels, `options=dict(fields=("image",))` reads the pictures alone, for tests.
    """

    def __init__(
        self,
        data_root: str | os.PathLike[str],
        split: str | None = None,
        options: dict[str, Any] | None = None,
        **settings: Any,
    ) -> None:
        options = options or {}
        opened = open_dataset if tuple(options.get("fields") or ()) == (IMAGE,) else open_pictures
        self.data = opened(data_root, split, **options)
        classes = self.data.classes
        colours = classes.palette.lookup[: len(classes)].tolist()
        named = {"classes": classes.names, "palette": colours, **settings.pop("metainfo", {})}
        super().__init__(metainfo=named, ignore_index=classes.ignore_index, **settings)

    def load_data_list(self) -> list[dict[str, Any]]:
        """Return the rows. They are read by `LoadFromPack`, in workers."""
        return [{"row": row, "reduce_zero_label": False, "seg_fields": []} for row in range(len(self.data))]

    def get_data_info(self, idx: int) -> Any:
        """Return a row with its pack."""
        return {**super().get_data_info(idx), "pack": self.data}


@TRANSFORMS.register_module()
class LoadFromPack(BaseTransform):
    """Loads picture and label of a row, in the place of LoadImageFromFile and LoadAnnotations."""

    def transform(self, results: dict[str, Any]) -> dict[str, Any]:
        pack, row = results.pop("pack"), results["row"]
        fields = dict(zip([field.name for field in pack.fields], pack[row], strict=True))
        planes = fields[IMAGE].numpy()
        pixels = planes[::-1] if len(planes) == 3 else planes
        results["img"] = np.ascontiguousarray(pixels.transpose(1, 2, 0))
        results["img_path"] = pack.key(row)
        results["img_shape"] = results["ori_shape"] = planes.shape[1:]
        if LABEL in fields:
            results["gt_seg_map"] = fields[LABEL].numpy()
            results["seg_fields"].append("gt_seg_map")
        return results
