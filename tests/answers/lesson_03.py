"""Answers to lesson 03's build cells and exercises, as learners would write them."""

import torch
from einops import rearrange

# rows_of -----------------------------------------------------------------------------------------


def rows_counted(embed_dim, num_heads, role, head):
    rows = torch.arange(3 * embed_dim).reshape(3, num_heads, -1)
    mine = rows["qkv".find(role), head].tolist()
    return mine[0], mine[-1] + 1


def rows_by_table(embed_dim, num_heads, role, head):
    start = {"q": 0, "k": embed_dim, "v": 2 * embed_dim}[role]
    width = embed_dim // num_heads
    return (start + width * head, start + width * (head + 1))


def rows_by_loop(embed_dim, num_heads, role, head):
    row = 0
    for r in ("q", "k", "v"):
        for h in range(num_heads):
            if (r, h) == (role, head):
                start = row
            row += embed_dim // num_heads
    return start, start + embed_dim // num_heads


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
    return rows_by_table(embed_dim, num_heads, role, head - 1)


def rows_of_head_count(embed_dim, num_heads, role, head):
    start = "qkv".index(role) * embed_dim + head * num_heads
    return start, start + num_heads


def rows_as_slice(embed_dim, num_heads, role, head):
    return slice(*rows_by_table(embed_dim, num_heads, role, head))


def rows_in_floats(embed_dim, num_heads, role, head):
    d = embed_dim / num_heads
    start = "qkv".index(role) * embed_dim + head * d
    return start, start + d


def rows_and_their_number(embed_dim, num_heads, role, head):
    start, stop = rows_by_table(embed_dim, num_heads, role, head)
    return start, stop - start


def rows_of_the_role(embed_dim, num_heads, role, head):
    start = "qkv".index(role) * embed_dim
    return start, start + embed_dim


def roles_a_head_wide(embed_dim, num_heads, role, head):
    d = embed_dim // num_heads
    start = ("qkv".index(role) + head) * d
    return start, start + d


def rows_as_list(embed_dim, num_heads, role, head):
    return list(rows_by_table(embed_dim, num_heads, role, head))


def rows_listed(embed_dim, num_heads, role, head):
    return list(range(*rows_by_table(embed_dim, num_heads, role, head)))


def roles_from_one(embed_dim, num_heads, role, head):
    d = embed_dim // num_heads
    start = {"q": 1, "k": 2, "v": 3}[role] * embed_dim + head * d
    return start, start + d


def rows_with_the_values_before_the_keys(embed_dim, num_heads, role, head):
    return rows_by_table(embed_dim, num_heads, {"q": "q", "k": "v", "v": "k"}[role], head)


def rows_from_row_one(embed_dim, num_heads, role, head):
    start, stop = rows_by_table(embed_dim, num_heads, role, head)
    return start + 1, stop + 1


# reorder_rows ------------------------------------------------------------------------------------


def third_rows(rows):
    return torch.cat([rows[role::3] for role in range(3)])


def turned(rows):
    return rows.unflatten(0, (-1, 3)).transpose(0, 1).flatten(0, 1)


def rows_one_by_one(rows):
    out = torch.empty_like(rows)
    third = len(rows) // 3
    for row in range(len(rows)):
        out[row % 3 * third + row // 3] = rows[row]
    return out


def rows_by_pattern(rows):
    return rearrange(rows, "(h d qkv) ... -> (qkv h d) ...", qkv=3, h=1)


def only_reshaped(rows):
    return rows.reshape(3, -1, *rows.shape[1:]).reshape(rows.shape)


def chunked_and_joined(rows):
    q, k, v = rows.chunk(3)
    return torch.cat([q, k, v])


def turned_back(rows):
    return rows.unflatten(0, (3, -1)).transpose(0, 1).flatten(0, 1)


def values_first(rows):
    return torch.cat([rows[2::3], rows[1::3], rows[0::3]])


def keys_before_queries(rows):
    return torch.cat([rows[1::3], rows[0::3], rows[2::3]])


def bias_forgotten(rows):
    return rows if rows.ndim == 1 else third_rows(rows)


def bias_that_raises(rows):
    return rearrange(rows, "(c qkv) i -> (qkv c) i", qkv=3)


def third_rows_in_place(rows):
    rows[:] = third_rows(rows)
    return rows


def not_joined(rows):
    return torch.stack([rows[0::3], rows[1::3], rows[2::3]])


def queries_alone(rows):
    return rows[::3]


def three_parts(rows):
    return rows[0::3], rows[1::3], rows[2::3]


def columns_moved(rows):
    return rows if rows.ndim == 1 else torch.cat([rows[:, i::3] for i in range(3)], dim=1)


# trust_split -------------------------------------------------------------------------------------


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


def odd_widths(split):
    x = torch.randn(2, 4, 15)
    return torch.equal(split(x, 3), rearrange(x, "b n (h d) -> b h n d", h=3)) and torch.equal(
        split(x, 5), rearrange(x, "b n (h d) -> b h n d", h=5)
    )


def one_small_picture(split):
    x = torch.arange(12.0).reshape(1, 2, 6)
    wanted = torch.tensor([[[[0.0, 1], [6, 7]], [[2, 3], [8, 9]], [[4, 5], [10, 11]]]])
    result = split(x, 3)
    return result.shape == wanted.shape and bool((result == wanted).all())


def trusting(split):
    return True


def distrusting(split):
    return False


def upside_down(split):
    return not head_by_head(split)


def shape_only(split):
    return split(torch.rand(1, 5, 12), 3).shape == (1, 3, 5, 4)


def number_of_axes_only(split):
    return split(torch.rand(1, 5, 12), 3).ndim == 4


def same_sum(split):
    x = torch.rand(2, 5, 12).double()
    return bool(torch.isclose(split(x, 3).sum(), x.sum()))


def there_and_back(split):
    x = torch.rand(2, 5, 12)
    return torch.equal(split(x, 3).reshape(2, 5, 12), x)


def merged_again(split):
    x = torch.rand(2, 5, 12)
    out = split(x, 3)
    return out.shape[1] == 3 and torch.equal(out.transpose(1, 2).reshape(2, 5, 12), x)


def token_changed(split):
    x = torch.rand(1, 5, 12)
    y = x.clone()
    y[:, 3] += 1
    rows = (split(x, 3) != split(y, 3)).any(-1)
    return rows.shape == (1, 3, 5) and bool(rows[..., 3].all()) and int(rows.sum()) == 3


def single_token(split):
    x = torch.rand(2, 1, 12)
    return torch.equal(split(x, 3)[:, :, 0].flatten(1), x[:, 0]) and split(x, 3).shape[1] == 3


def single_head(split):
    x = torch.rand(2, 5, 12)
    return torch.equal(split(x, 1), x[:, None])


def two_heads(split):
    x = torch.rand(2, 5, 12)
    return torch.equal(split(x, 2), torch.stack(x.chunk(2, dim=-1), dim=1))


def single_columns(split):
    x = torch.rand(2, 5, 3)
    return torch.equal(split(x, 3), torch.stack(x.chunk(3, dim=-1), dim=1))


def first_head_of_split(split):
    x = torch.rand(2, 5, 12)
    return torch.equal(split(x, 3)[:, 0], x[..., :4])


def all_ones(split):
    x = torch.ones(2, 5, 12)
    return torch.equal(split(x, 3), torch.ones(2, 3, 5, 4))


def elementwise(split):
    x = torch.rand(2, 5, 12)
    return split(x, 3) == torch.stack(x.chunk(3, dim=-1), dim=1)


def says_nothing(split):
    head_by_head(split)


RIGHT = {
    "rows_of": [rows_counted, rows_by_table, rows_by_loop],
    "reorder_rows": [third_rows, turned, rows_one_by_one, rows_by_pattern],
    "trust_split": [
        head_by_head,
        against_view_and_transpose,
        verdict_as_tensor,
        odd_widths,
        one_small_picture,
        merged_again,
    ],
}
WRONG = {
    "rows_of": [
        (rows_without_role, "the role is left out"),
        (rows_head_by_head, "the order (h qkv d)"),
        (rows_with_the_last, "a slice stops before its stop"),
        (rows_from_one, "counted from 0"),
        (rows_of_head_count, "mixed up"),
        (rows_as_slice, "not a slice"),
        (rows_in_floats, "whole numbers"),
        (rows_and_their_number, "how many rows"),
        (rows_of_the_role, "all heads"),
        (roles_a_head_wide, "one head wide"),
        (rows_as_list, "not a list"),
        (rows_listed, "not each row"),
        (roles_from_one, "queries come first, at row 0"),
        (rows_with_the_values_before_the_keys, "in the order q, k, v"),
        (rows_from_row_one, "rows are counted from 0"),
    ],
    "reorder_rows": [
        (only_reshaped, "stand where they stood"),
        (chunked_and_joined, "stand where they stood"),
        (turned_back, "the way back"),
        (values_first, "in the wrong order"),
        (keys_before_queries, "in the wrong order"),
        (bias_forgotten, "a bias has one axis only"),
        (bias_that_raises, "a bias has one axis only"),
        (third_rows_in_place, "write into a new one, rows.clone()"),
        (not_joined, "torch.cat"),
        (queries_alone, "the queries alone"),
        (three_parts, "torch.cat"),
        (columns_moved, "columns"),
    ],
    "trust_split": [
        (trusting, "trusts everything"),
        (distrusting, "trusts nothing"),
        (upside_down, "the wrong way round"),
        (shape_only, "looks at the shape only"),
        (number_of_axes_only, "trusts everything"),
        (same_sum, "all numbers are still there"),
        (there_and_back, "undoes its own damage"),
        (token_changed, "which columns each head has"),
        (single_token, "a single token"),
        (single_head, "a single head"),
        (two_heads, "always makes two heads"),
        (single_columns, "a single column"),
        (first_head_of_split, "the first head only"),
        (all_ones, "looks at the shape only"),
        (elementwise, "one True or False"),
        (says_nothing, "nothing"),
    ],
}
