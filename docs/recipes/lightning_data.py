"""Lightning: a LightningDataModule over a pack, for any number of devices, resumed exactly in the middle of an epoch.

python docs/recipes/lightning_data.py PACK [DEVICES [CHECKPOINT]]    # Lightning keeps the loader's state in checkpoints
"""

import sys

import torch
from lightning import LightningDataModule, LightningModule, Trainer, seed_everything
from lightning.pytorch.callbacks import ModelCheckpoint

from readers import DeviceBatches, open_dataset


class PackData(LightningDataModule):
    def __init__(self, pack: str) -> None:
        super().__init__()
        self.train, self.val = (open_dataset(pack, split=split, label="index") for split in ("train", "val"))

    def train_dataloader(self) -> DeviceBatches:
        loader = self.train.loader(
            3, shuffle=True, seed=7, rank=self.trainer.global_rank, world_size=self.trainer.world_size
        )
        loader.set_epoch(self.trainer.current_epoch)  # not 0 after a checkpoint between epochs
        return loader.to(self.trainer.strategy.root_device, normalize=True, label_dtype=torch.long)

    def val_dataloader(self) -> DeviceBatches:
        loader = self.val.loader(3, rank=self.trainer.global_rank, world_size=self.trainer.world_size)  # each row once
        return loader.to(self.trainer.strategy.root_device, normalize=True, label_dtype=torch.long)  # as in training


class Model(LightningModule):
    def __init__(self, classes: int) -> None:
        super().__init__()
        self.net, self.loss = torch.nn.Conv2d(3, classes, 3, padding=1), torch.nn.CrossEntropyLoss(ignore_index=255)

    def on_train_epoch_start(self) -> None:
        self.trainer.train_dataloader.set_epoch(self.current_epoch)

    def training_step(self, batch: tuple[torch.Tensor, ...], _: int) -> torch.Tensor:
        loss = self.loss(self.net(batch[0]), batch[1])
        print(f"rank {self.global_rank} step {self.global_step} loss {loss:.6f}")
        return loss

    def validation_step(self, batch: tuple[torch.Tensor, ...], _: int) -> None:
        self.log("val_loss", self.loss(self.net(batch[0]), batch[1]), batch_size=len(batch[0]), sync_dist=True)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.AdamW(self.parameters(), lr=0.01)


if __name__ == "__main__":
    pack, devices, checkpoint = (*sys.argv[1:], "", "")[:3]
    seed_everything(0)
    data = PackData(pack)
    keep = ModelCheckpoint(every_n_train_steps=4, save_top_k=-1, filename="{step}")
    trainer = Trainer(
        devices=int(devices or 1), max_epochs=3, callbacks=[keep], logger=False, enable_progress_bar=False
    )
    trainer.fit(Model(len(data.train.classes)), data, ckpt_path=checkpoint or None)
    print(f"val_loss {trainer.callback_metrics['val_loss']:.6f}")
