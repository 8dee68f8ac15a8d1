"""Watches the blocks of a model: whether each changes its tokens, and whether that counts."""

import torch
from torch import Tensor, nn


def of_torch(module: nn.Module) -> bool:
    """Whether a module's class is torch's own."""
    return type(module).__module__.startswith("torch.")


class Acts:
    """Watches the blocks of each list: whether they change their tokens, and whether that counts.

    Blocks are modules that hold weights, not vectors alone, and turn tokens (B, N, D) into tokens
    of the same shape: two and more of one class that stand side by side (of torch's own classes
    only in a list or Sequential), or the only one of a ModuleList.
    """

    def __init__(self, model: nn.Module):
        self.moved: dict[str, bool] = {}
        self.heard: dict[str, bool] = {}
        self.reads: dict[str, Tensor] = {}  # of the first image, which tokens that come out count
        self.came: dict[str, Tensor] = {}
        self.handles = []
        for path, holder in model.named_modules():
            kinds = [type(part) for part in holder.children()]
            listed = isinstance(holder, (nn.ModuleList, nn.Sequential))
            for name, part in holder.named_children():
                alone = isinstance(holder, nn.ModuleList) and len(kinds) == 1
                several = kinds.count(type(part)) > 1 and (listed or not of_torch(part))
                if (alone or several) and any(x.ndim > 1 for x in part.parameters()):
                    self.follow(f"{path}.{name}".lstrip("."), part)

    def follow(self, path: str, block: nn.Module) -> None:
        """Watch one block."""

        def before(_, args):
            tokens = [x for x in args if isinstance(x, Tensor) and x.ndim == 3]
            if len(tokens) == 1 and tokens[0] is args[0]:  # several streams are left alone
                self.came[path] = args[0].detach().clone()  # the block may write into it

        def after(_, args, output):
            out = output[0] if isinstance(output, (tuple, list)) and output else output
            came = self.came.pop(path, None)
            if not isinstance(out, Tensor) or came is None or out.ndim != 3:
                return
            if out.shape != came.shape:
                return
            self.moved[path] = self.moved.get(path, False) or not torch.equal(out.detach(), came)
            self.heard.setdefault(path, False)
            if out.requires_grad:
                out.register_hook(hear)

        def hear(grad):
            self.reads[path] = (grad[0] != 0).any(-1)
            self.heard[path] = self.heard[path] or bool(grad.any())

        self.handles += [block.register_forward_pre_hook(before)]
        self.handles += [block.register_forward_hook(after)]

    def result(self) -> dict[str, bool]:
        """Of each block whether it has an influence."""
        return {path: moved and self.heard[path] for path, moved in self.moved.items()}

    def remove(self) -> None:
        """Take the hooks away again."""
        for handle in self.handles:
            handle.remove()
