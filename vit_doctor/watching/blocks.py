"""Watches the blocks of a model: whether each changes its tokens, and which tokens count."""

from contextlib import ExitStack

import torch
from torch import Tensor, nn

from .calls import first_output


class Blocks:
    """Watches the blocks of each list; `hooks` takes its hooks away again.

    Blocks are modules that hold weights, not vectors alone, and turn tokens (B, N, D) into tokens
    of the same shape: two and more of one class that stand side by side (of torch's own classes
    only in a list or Sequential), the only one of a ModuleList, or the parts of a block that is a
    ModuleList itself.
    """

    def __init__(self, model: nn.Module, hooks: ExitStack):
        self.changes: dict[str, bool] = {}  # by its path, whether a block changes its tokens
        # Likewise, which tokens that come out for the first image have an influence.
        self.tokens_read: dict[str, Tensor] = {}
        self.inputs: dict[str, Tensor] = {}
        for path, holder in model.named_modules():
            kinds = [type(part) for part in holder.children()]
            listed = isinstance(holder, (nn.ModuleList, nn.Sequential))
            around = model.get_submodule(path.rpartition(".")[0])
            nested = isinstance(around, nn.ModuleList) and isinstance(holder, nn.ModuleList)
            for name, part in holder.named_children():
                of_torch = type(part).__module__.startswith("torch.")
                alone = isinstance(holder, nn.ModuleList) and len(kinds) == 1
                several = kinds.count(type(part)) > 1 and (listed or not of_torch)
                holds = any(x.ndim > 1 for x in part.parameters())
                if holds and (alone or several or nested):
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
