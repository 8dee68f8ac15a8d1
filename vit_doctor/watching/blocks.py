"""Watches the blocks of a model: whether each changes its tokens, and which tokens count."""

from contextlib import ExitStack

import torch
from torch import Tensor, nn

from .calls import first_output


class Blocks:
    """Watches the blocks of each list; `hooks` takes its hooks away again.

    Blocks are modules that hold weights, not vectors alone, and turn tokens (B, N, D) into tokens
    of the same shape: two and more of one class that stand side by side (of torch's own classes
    only in a list or Sequential), or the only one of a ModuleList.

    Attributes:
        changes: by its path, whether a block changes its tokens.
        tokens_read: likewise, which tokens that come out for the first image have an influence.
    """

    def __init__(self, model: nn.Module, hooks: ExitStack):
        self.changes: dict[str, bool] = {}
        self.tokens_read: dict[str, Tensor] = {}
        self.inputs: dict[str, Tensor] = {}
        for path, holder in model.named_modules():
            kinds = [type(part) for part in holder.children()]
            listed = isinstance(holder, (nn.ModuleList, nn.Sequential))
            for name, part in holder.named_children():
                of_torch = type(part).__module__.startswith("torch.")
                alone = isinstance(holder, nn.ModuleList) and len(kinds) == 1
                several = kinds.count(type(part)) > 1 and (listed or not of_torch)
                if (alone or several) and any(x.ndim > 1 for x in part.parameters()):
                    self.follow(f"{path}.{name}".lstrip("."), part, hooks)

    def follow(self, path: str, block: nn.Module, hooks: ExitStack) -> None:
        """Watch one block."""

        def before(_, args):
            tokens = [x for x in args if isinstance(x, Tensor) and x.ndim == 3]
            if len(tokens) == 1 and tokens[0] is args[0]:  # several streams are left alone
                self.inputs[path] = args[0].detach().clone()  # the block may write into it

        def after(_, args, output):
            tokens, old = first_output(output), self.inputs.pop(path, None)
            if not isinstance(tokens, Tensor) or old is None or tokens.shape != old.shape:
                return
            changed = not torch.equal(tokens.detach(), old)
            self.changes[path] = self.changes.get(path, False) or changed
            if tokens.requires_grad:
                tokens.register_hook(read)

        def read(grad):
            self.tokens_read[path] = (grad[0] != 0).any(-1)

        hooks.enter_context(block.register_forward_pre_hook(before))
        hooks.enter_context(block.register_forward_hook(after))
