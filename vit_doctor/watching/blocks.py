"""Watches the blocks of a model: whether each changes its tokens, and whether that counts."""

import torch
from torch import Tensor, nn

from .calls import is_norm


class Acts:
    """Watches the blocks of each list: whether they change their tokens, and whether that counts.

    Blocks are modules with parameters, and no norms, of which a list or Sequential holds two and
    more of one class, and which turn tokens (B, N, D) into tokens of the same shape.
    """

    def __init__(self, model: nn.Module):
        self.moved: dict[str, bool] = {}
        self.heard: dict[str, bool] = {}
        self.reads: dict[str, Tensor] = {}  # of the first image, which tokens that come out count
        self.came: dict[str, Tensor] = {}
        self.handles = []
        for path, holder in model.named_modules():
            if not isinstance(holder, (nn.ModuleList, nn.Sequential)):
                continue
            kinds = [type(part) for part in holder]
            for name, part in holder.named_children():
                learns = any(True for _ in part.parameters()) and not is_norm(part)
                if kinds.count(type(part)) > 1 and learns:
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
