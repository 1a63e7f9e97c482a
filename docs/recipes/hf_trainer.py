"""Hugging Face Trainer: batches from a data set, a collator that names their parts, and an `Order`, resumed exactly.

python docs/recipes/hf_trainer.py PACK [OUT [CHECKPOINT]]    # the Trainer itself distributes the rows to processes
"""

import sys
from typing import Any

import torch
from torch.utils.data import default_collate
from transformers import Trainer, TrainerCallback, TrainingArguments

from readers import Order, open_dataset

pack, out, checkpoint = (*sys.argv[1:], "", "")[:3]
train, val = (open_dataset(pack, split=split, label="index") for split in ("train", "val"))
order = Order(train, seed=7)
mean, std = (torch.tensor(values).view(1, 3, 1, 1) for values in (train.mean, train.std))


def collate(samples: list[tuple[torch.Tensor, torch.Tensor]]) -> dict[str, torch.Tensor]:
    images, labels = default_collate(samples)  # read as one batch, and not copied again
    return {"pixel_values": (images / 255 - mean) / std, "labels": labels.long()}


class PackTrainer(Trainer):
    def _get_train_sampler(self, *_: Any) -> Order:
        return order


class SetEpoch(TrainerCallback):
    def on_epoch_begin(self, _: Any, state: Any, *__: Any, **___: Any) -> None:
        order.set_epoch(int(state.epoch))  # a resumed run with several processes does not set the epoch of its sampler


class Model(torch.nn.Module):  # or SegformerForSemanticSegmentation.from_pretrained("nvidia/mit-b0", num_labels=…)
    def __init__(self) -> None:
        super().__init__()
        self.net = torch.nn.Conv2d(3, len(train.classes), 3, padding=1)
        self.loss = torch.nn.CrossEntropyLoss(ignore_index=train.classes.ignore_index)

    def forward(self, pixel_values: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
        logits = self.net(pixel_values)
        return {"loss": self.loss(logits, labels), "logits": logits}


if __name__ == "__main__":
    torch.manual_seed(0)
    often: dict[str, Any] = {"logging_steps": 1, "save_steps": 4, "eval_strategy": "epoch", "report_to": "none"}
    arguments = TrainingArguments(out or "out", per_device_train_batch_size=3, learning_rate=0.01, **often)
    trainer = PackTrainer(Model(), arguments, collate, train, val, callbacks=[SetEpoch()])
    trainer.train(resume_from_checkpoint=checkpoint or None)
    print("losses", *(f"{entry['loss']:.6f}" for entry in trainer.state.log_history if "loss" in entry))
