"""Where parameters of a model, such as positions and cls, meet the tokens of images."""

from collections.abc import Sequence

from torch import Tensor, nn

from .records import Label, Meeting

Labels = Sequence[Label | None]
FEWEST = 4  # rows of a table of positions


class Meetings:
    """Writes down which parameters are added to tokens, or join them; `found` holds them."""

    def __init__(self, model: nn.Module):
        self.parameters = dict(model.named_parameters())
        self.found: list[Meeting] = []

    def added(self, tensors: Sequence[Tensor], labels: Labels, result: Tensor, where: str) -> None:
        """Note a table that is added to tokens, or a row of it that is added to one of them."""
        kinds = [label.kind if label else "" for label in labels]
        if kinds.count("parameter") != 1 or len(tensors) != 2:
            return
        at = kinds.index("parameter")
        x, content, label = tensors[at], tensors[1 - at], labels[at]
        fits = content.ndim in (2, 3) and content.shape == result.shape[-content.ndim :]
        if label is None or not fits:
            return
        table = self.parameters[label.name]
        rows, width = x.reshape(-1, x.shape[-1]), table.shape[-1]
        filled = rows[rows.abs().amax(-1) > 0]
        enough = table.ndim > 1 and table.numel() >= FEWEST * width
        whole = x.ndim >= 2 and x.shape[-2] >= FEWEST and (enough or content.ndim == 3)
        if 0 < len(filled) <= len(rows) / 2:  # padded: it fills rows that are empty
            self.meet(label.name, "joined", filled, content, where)
        elif whole and content.shape[-2] == x.shape[-2]:
            self.meet(label.name, "added", x, content, where)
        elif enough and content.ndim == 2 and x.numel() == x.shape[-1] == width:
            self.meet(label.name, "added", table, content, where)

    def joined(self, tensors: Sequence[Tensor], labels: Labels, where: str) -> None:
        """Note a parameter that is concatenated to tokens."""
        names = [label.name if label and label.kind == "parameter" else "" for label in labels]
        contents = [x for x, name in zip(tensors, names, strict=True) if not name]
        for x, name in zip(tensors, names, strict=True):
            fits = [y for y in contents if y.ndim >= x.ndim and y.shape[-1:] == x.shape[-1:]]
            if name and x.ndim in (1, 2, 3) and fits:
                self.meet(name, "joined", x, max(fits, key=Tensor.numel), where)

    def written(self, tensors: Sequence[Tensor], label: Label | None, where: str) -> None:
        """Note a parameter that is written over a token, as in x[:, 0] = cls."""
        tokens, x = tensors[0], tensors[-1]
        if label and label.kind == "parameter" and tokens.ndim == 3 and x.numel() < tokens.numel():
            self.meet(label.name, "joined", x, tokens, where)

    def meet(self, name: str, kind: str, x: Tensor, content: Tensor, where: str) -> None:
        """Write down a parameter beside the tokens that it meets, once for a line."""
        if any((each.name, each.kind, each.where) == (name, kind, where) for each in self.found):
            return
        sizes = [float(t.detach().float().square().mean(-1).sqrt().median()) for t in (x, content)]
        rows = x.detach().float().reshape(-1, x.shape[-1])
        alike = len(rows) > 1 and not float(rows.std(0).max())
        self.found.append(Meeting(name, kind, sizes[0], sizes[1], where, alike))
