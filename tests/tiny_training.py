"""A model and pictures so small that a whole training takes a moment."""

import torch
from torch.utils.data import Dataset

from vit_steps import ViT, ViTConfig, training
from vit_steps.training.checkpoints import read_checkpoint
from vit_steps.training.dataset import ImageDataset

SIZES = dict(image_size=4, patch_size=2, in_channels=1, num_classes=3, embed_dim=8, depth=1)


def tiny(seed=0, **changes):
    torch.manual_seed(seed)
    return ViT(ViTConfig(**(SIZES | dict(num_heads=2) | changes)))


def pictures(n=20, seed=0, classes=("a", "b", "c")):
    """Some noise, and each class brighter than the one before."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.arange(n) % len(classes)
    images = torch.randn(n, 1, 4, 4, generator=generator) * 0.1
    return ImageDataset(images + labels[:, None, None, None] - 1, labels, classes)


def fit(model, folder=None, train=None, val=None, **options):
    options = dict(epochs=3, batch_size=8, progress=False, device="cpu") | options
    train = pictures() if train is None else train
    val = pictures(9, 1) if val is None else val
    return training.fit(model, train, val, folder=folder, **options)


def after(epoch):
    """A report that ends the training after an epoch."""
    return lambda history: len(history) == epoch


def history_in(folder, name="last"):
    """The history that a checkpoint tells."""
    return training.History(**read_checkpoint(folder / f"{name}.safetensors")[1]["history"])


class Plain(Dataset):
    """Items, as anyone's own data set gives them."""

    def __init__(self, items):
        self.items = items

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


def same(a, b):
    """Bit for bit, names and all."""
    a, b = a.state_dict(), b.state_dict()
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)
