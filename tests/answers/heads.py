"""Answers to lesson 03's exercises, as learners would write them."""

import torch


def rows_counted(embed_dim, num_heads, role, head):
    rows = torch.arange(3 * embed_dim).reshape(3, num_heads, -1)
    mine = rows["qkv".find(role), head].tolist()
    return mine[0], mine[-1] + 1


def rows_by_chunks(embed_dim, num_heads, role, head):
    start = {"q": 0, "k": embed_dim, "v": 2 * embed_dim}[role]
    width = embed_dim // num_heads
    return [start + width * head, start + width * (head + 1)]


def rows_without_role(embed_dim, num_heads, role, head):
    width = embed_dim // num_heads
    return width * head, width * (head + 1)


def rows_head_by_head(embed_dim, num_heads, role, head):
    width = embed_dim // num_heads
    start = head * 3 * width + {"q": 0, "k": width, "v": 2 * width}[role]
    return start, start + width


def rows_with_the_last(embed_dim, num_heads, role, head):
    start, stop = rows_counted(embed_dim, num_heads, role, head)
    return start, stop - 1


def rows_from_one(embed_dim, num_heads, role, head):
    return rows_by_chunks(embed_dim, num_heads, role, head - 1)


def rows_of_head_count(embed_dim, num_heads, role, head):
    start = "qkv".index(role) * embed_dim + head * num_heads
    return start, start + num_heads


def third_rows(rows):
    return torch.cat([rows[role::3] for role in range(3)])


def turned(rows):
    return rows.unflatten(0, (-1, 3)).transpose(0, 1).flatten(0, 1)


def only_reshaped(rows):
    return rows.reshape(3, -1, *rows.shape[1:]).reshape(rows.shape)


def turned_back(rows):
    return rows.unflatten(0, (3, -1)).transpose(0, 1).flatten(0, 1)


def values_first(rows):
    return torch.cat([rows[2::3], rows[1::3], rows[0::3]])


def bias_forgotten(rows):
    return rows if rows.ndim == 1 else third_rows(rows)


def third_rows_in_place(rows):
    rows[:] = third_rows(rows)
    return rows


def head_by_head(split):
    x = torch.rand(3, 7, 30)
    for heads in (3, 5):
        out, d = split(x, heads), 30 // heads
        if out.shape != (3, heads, 7, d):
            return False
        if any((out[:, i] != x[..., i * d : i * d + d]).any() for i in range(heads)):
            return False
    return True


def against_view_and_transpose(split):
    x = torch.arange(120).view(2, 5, 12)
    return (
        split(x, 3).equal(x.view(2, 5, 3, 4).transpose(1, 2))
        and split(x, 4).equal(x.view(2, 5, 4, 3).transpose(1, 2))
    )  # fmt: skip


def verdict_as_tensor(split):
    return torch.tensor(head_by_head(split))


def trusting(split):
    return True


def upside_down(split):
    return not head_by_head(split)


def shape_only(split):
    return split(torch.rand(1, 5, 12), 3).shape == (1, 3, 5, 4)


def same_sum(split):
    x = torch.rand(2, 5, 12).double()
    return bool(torch.isclose(split(x, 3).sum(), x.sum()))


def token_changed(split):
    x = torch.rand(1, 5, 12)
    y = x.clone()
    y[:, 3] += 1
    rows = (split(x, 3) != split(y, 3)).any(-1)
    return rows.shape == (1, 3, 5) and bool(rows[..., 3].all()) and int(rows.sum()) == 3


def single_token(split):
    x = torch.rand(2, 1, 12)
    return torch.equal(split(x, 3)[:, :, 0].flatten(1), x[:, 0]) and split(x, 3).shape[1] == 3


def two_heads(split):
    x = torch.rand(2, 5, 12)
    return torch.equal(split(x, 2), torch.stack(x.chunk(2, dim=-1), dim=1))


def elementwise(split):
    x = torch.rand(2, 5, 12)
    return split(x, 3) == torch.stack(x.chunk(3, dim=-1), dim=1)


RIGHT = {
    "rows_of": [rows_counted, rows_by_chunks],
    "reorder_rows": [third_rows, turned],
    "trust_split": [head_by_head, against_view_and_transpose, verdict_as_tensor],
}
WRONG = {
    "rows_of": [
        (rows_without_role, "the role is left out"),
        (rows_head_by_head, "the order (h qkv d)"),
        (rows_with_the_last, "a slice stops before its stop"),
        (rows_from_one, "counted from 0"),
        (rows_of_head_count, "mixed up"),
    ],
    "reorder_rows": [
        (only_reshaped, "stand where they stood"),
        (turned_back, "the way back"),
        (values_first, "in the wrong order"),
        (bias_forgotten, "a bias has one axis only"),
        (third_rows_in_place, "changes the tensor"),
    ],
    "trust_split": [
        (trusting, "trusts everything"),
        (upside_down, "the wrong way round"),
        (shape_only, "looks at the shape only"),
        (same_sum, "all numbers are still there"),
        (token_changed, "which columns each head has"),
        (single_token, "a single token"),
        (two_heads, "two heads only"),
        (elementwise, "torch.equal"),
    ],
}
