"""Answers to lesson 03's build cells and exercises, as learners would write them."""

import torch
from einops import rearrange

# split_heads -------------------------------------------------------------------------------------


def split_by_pattern(x, num_heads):
    return rearrange(x, "b n (h d) -> b h n d", h=num_heads)


def split_by_view_and_transpose(x, num_heads):
    B, N, D = x.shape
    return x.view(B, N, num_heads, D // num_heads).transpose(1, 2)


def split_by_slices(x, num_heads):
    d = x.shape[-1] // num_heads
    heads = []
    for i in range(num_heads):
        heads.append(x[:, :, i * d : (i + 1) * d])
    return torch.stack(heads, dim=1)


def split_by_chunks(x, num_heads):
    return torch.cat([part[:, None] for part in x.chunk(num_heads, dim=-1)], dim=1)


def split_after_turning(x, num_heads):
    return x.mT.unflatten(1, (num_heads, -1)).mT


def view_at_once(x, num_heads):
    B, N, D = x.shape
    return x.view(B, num_heads, N, D // num_heads)


def turned_then_reshaped(x, num_heads):
    B, N, D = x.shape
    return x.transpose(1, 2).reshape(B, num_heads, N, D // num_heads)


def heads_not_forward(x, num_heads):
    B, N, D = x.shape
    return x.view(B, N, num_heads, D // num_heads)


def heads_by_columns(x, num_heads):
    return rearrange(x, "b n (d h) -> b h n d", h=num_heads)


def width_is_head_count(x, num_heads):
    return rearrange(x, "b n (h d) -> b h n d", d=num_heads)


def stacked_in_front(x, num_heads):
    return torch.stack(x.chunk(num_heads, dim=-1))


def always_two_heads(x, num_heads):
    return rearrange(x, "b n (h d) -> b h n d", h=2)


def tokens_cut(x, num_heads):
    return rearrange(x, "b (h n) d -> b h n d", h=num_heads)


def tokens_chunked(x, num_heads):
    return torch.stack(x.chunk(num_heads, dim=1), dim=1)


def heads_beside_the_batch(x, num_heads):
    return rearrange(x, "b n (h d) -> (b h) n d", h=num_heads)


def tokens_last(x, num_heads):
    return rearrange(x, "b n (h d) -> b h d n", h=num_heads)


def wrong_axes_swapped(x, num_heads):
    B, N, D = x.shape
    return x.view(B, N, num_heads, D // num_heads).transpose(2, 3)


def list_of_heads(x, num_heads):
    d = x.shape[-1] // num_heads
    return [x[..., i * d : (i + 1) * d] for i in range(num_heads)]


def first_head_again(x, num_heads):
    d = x.shape[-1] // num_heads
    return torch.stack([x[..., :d] for _ in range(num_heads)], dim=1)


def a_float_for_the_width(x, num_heads):
    B, N, D = x.shape
    return x.view(B, N, num_heads, D / num_heads).transpose(1, 2)


# merge_heads -------------------------------------------------------------------------------------


def merge_by_pattern(x):
    return rearrange(x, "b h n d -> b n (h d)")


def merge_by_transpose(x):
    B, h, N, d = x.shape
    return x.transpose(1, 2).reshape(B, N, h * d)


def merge_by_cat(x):
    return torch.cat(x.unbind(dim=1), dim=-1)


def merge_by_loop(x):
    B, h, N, d = x.shape
    merged = torch.zeros(B, N, h * d)
    for i in range(h):
        merged[:, :, i * d : (i + 1) * d] = x[:, i]
    return merged


def reshaped_only(x):
    B, h, N, d = x.shape
    return x.reshape(B, N, h * d)


def swapped_only(x):
    return x.transpose(1, 2)


def columns_by_turns(x):
    return rearrange(x, "b h n d -> b n (d h)")


def heads_below(x):
    return x.flatten(1, 2)


def heads_below_by_cat(x):
    return torch.cat([x[:, i] for i in range(x.shape[1])], dim=1)


def heads_added(x):
    return x.sum(dim=1)


def heads_averaged(x):
    return x.mean(dim=1)


def tokens_joined(x):
    return x.flatten(2)


def all_in_one_row(x):
    return x.transpose(1, 2).flatten(1)


def last_axes_swapped(x):
    B, h, N, d = x.shape
    return x.transpose(2, 3).reshape(B, N, h * d)


def first_head_only(x):
    return x[:, 0]


def batch_unpacked(x):
    return torch.cat(list(x), dim=-1)


def width_cut_by_thought(x):
    B, N = x.shape[0], x.shape[2]
    return x.transpose(1, 2).reshape(B, N, 768)


def viewed_without_contiguous(x):
    B, h, N, d = x.shape
    return x.transpose(1, 2).view(B, N, h * d)


# split_qkv ---------------------------------------------------------------------------------------


def qkv_by_pattern(qkv, num_heads):
    q, k, v = rearrange(qkv, "b n (qkv h d) -> qkv b h n d", qkv=3, h=num_heads)
    return q, k, v


def qkv_by_chunk(qkv, num_heads):
    return tuple(split_by_view_and_transpose(part, num_heads) for part in qkv.chunk(3, dim=-1))


def qkv_by_permute(qkv, num_heads):
    B, N, width = qkv.shape
    return qkv.reshape(B, N, 3, num_heads, width // 3 // num_heads).permute(2, 0, 3, 1, 4)


def qkv_by_slices(qkv, num_heads):
    D = qkv.shape[-1] // 3
    q = split_by_slices(qkv[..., :D], num_heads)
    k = split_by_slices(qkv[..., D : 2 * D], num_heads)
    v = split_by_slices(qkv[..., 2 * D :], num_heads)
    return [q, k, v]


def roles_fastest(qkv, num_heads):
    q, k, v = rearrange(qkv, "b n (h d qkv) -> qkv b h n d", qkv=3, h=num_heads)
    return q, k, v


def heads_first(qkv, num_heads):
    B, N, width = qkv.shape
    parts = qkv.view(B, N, num_heads, 3, width // 3 // num_heads)
    return parts.permute(3, 0, 2, 1, 4).unbind(0)


def heads_fastest(qkv, num_heads):
    return tuple(rearrange(qkv, "b n (qkv d h) -> qkv b h n d", qkv=3, h=num_heads))


def not_cut_into_heads(qkv, num_heads):
    return qkv.chunk(3, dim=-1)


def keys_first(qkv, num_heads):
    k, q, v = qkv_by_pattern(qkv, num_heads)
    return q, k, v


def backwards(qkv, num_heads):
    v, k, q = qkv_by_pattern(qkv, num_heads)
    return q, k, v


def all_viewed(qkv, num_heads):
    B, N, width = qkv.shape
    q, k, v = qkv.view(3, B, num_heads, N, width // 3 // num_heads)
    return q, k, v


def heads_behind_tokens(qkv, num_heads):
    q, k, v = rearrange(qkv, "b n (qkv h d) -> qkv b n h d", qkv=3, h=num_heads)
    return q, k, v


def each_third_viewed(qkv, num_heads):
    return tuple(view_at_once(part.contiguous(), num_heads) for part in qkv.chunk(3, dim=-1))


def qkv_width_is_head_count(qkv, num_heads):
    return tuple(rearrange(qkv, "b n (qkv h d) -> qkv b h n d", qkv=3, d=num_heads))


def queries_for_all(qkv, num_heads):
    q = qkv_by_pattern(qkv, num_heads)[0]
    return q, q, q


def tokens_in_thirds(qkv, num_heads):
    q, k, v = qkv.chunk(3, dim=1)
    return (
        split_by_pattern(q, num_heads),
        split_by_pattern(k, num_heads),
        split_by_pattern(v, num_heads),
    )


def keys_for_values(qkv, num_heads):
    D = qkv.shape[-1] // 3
    q, k, v = qkv[..., :D], qkv[..., D : 2 * D], qkv[..., D : 2 * D]
    return tuple(split_by_pattern(part, num_heads) for part in (q, k, v))


def only_the_queries(qkv, num_heads):
    return qkv_by_pattern(qkv, num_heads)[0]


def parts_of_three(qkv, num_heads):
    q, k, v = qkv.split(3, dim=-1)
    return q, k, v


def lists_of_numbers(qkv, num_heads):
    parts = rearrange(qkv, "b n (qkv h d) -> qkv b h n d", qkv=3, h=num_heads)
    return tuple(torch.tensor(part.tolist()) for part in parts)


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
    "split_heads": [
        split_by_pattern,
        split_by_view_and_transpose,
        split_by_slices,
        split_by_chunks,
        split_after_turning,
    ],
    "merge_heads": [merge_by_pattern, merge_by_transpose, merge_by_cat, merge_by_loop],
    "split_qkv": [qkv_by_pattern, qkv_by_chunk, qkv_by_permute, qkv_by_slices],
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
    "split_heads": [
        (view_at_once, "the memory straight on"),
        (turned_then_reshaped, "the memory straight on"),
        (heads_not_forward, "bring the heads forward"),
        (heads_by_columns, "every h-th column"),
        (width_is_head_count, "mixed up"),
        (stacked_in_front, "in front of the batch"),
        (always_two_heads, "always two heads"),
        (tokens_cut, "cuts the row of tokens"),
        (tokens_chunked, "cuts the row of tokens"),
        (heads_beside_the_batch, "joined with the batch"),
        (tokens_last, "tokens come before the columns"),
        (wrong_axes_swapped, "bring the heads forward"),
        (list_of_heads, "torch.stack"),
        (first_head_again, "every head gets the first columns"),
        (a_float_for_the_width, "in the line `return x.view(B, N, num_heads, D / num_heads)"),
    ],
    "merge_heads": [
        (reshaped_only, "the memory straight on"),
        (swapped_only, "still apart"),
        (columns_by_turns, "by turns"),
        (heads_below, "below each other"),
        (heads_below_by_cat, "below each other"),
        (heads_added, "added"),
        (heads_averaged, "averaged"),
        (tokens_joined, "joins the tokens"),
        (all_in_one_row, "one row"),
        (last_axes_swapped, "the last two"),
        (first_head_only, "one head is left"),
        (batch_unpacked, "the images"),
        (width_cut_by_thought, "in the line `return x.transpose(1, 2).reshape(B, N, 768)`"),
        (viewed_without_contiguous, "Use .reshape(...) instead"),
    ],
    "split_qkv": [
        (roles_fastest, "(h d qkv)"),
        (heads_first, "(h qkv d)"),
        (heads_fastest, "every h-th column"),
        (not_cut_into_heads, "not yet cut into heads"),
        (keys_first, "queries first"),
        (backwards, "queries first"),
        (all_viewed, "the memory straight on"),
        (each_third_viewed, "the memory straight on"),
        (heads_behind_tokens, "bring the heads forward"),
        (qkv_width_is_head_count, "mixed up"),
        (queries_for_all, "three times the queries"),
        (tokens_in_thirds, "cuts the row of tokens"),
        (keys_for_values, "the values are the keys again"),
        (only_the_queries, "three tensors"),
        (lists_of_numbers, "no gradient passes"),
        (parts_of_three, "too many values to unpack"),
    ],
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
        (two_heads, "two heads only"),
        (single_columns, "a single column"),
        (first_head_of_split, "the first head only"),
        (all_ones, "looks at the shape only"),
        (elementwise, "one True or False"),
        (says_nothing, "nothing"),
    ],
}
