"""Lesson 04: ten questions, their answers, and why each is right or not."""

from ..choosing import Choice

QUESTIONS: dict[int, Choice] = {
    1: Choice(
        "A head is 64 wide. Its queries have variance 4, its keys variance 1, all independent. "
        "How large is the standard deviation of q · k?",
        "b",
        {
            "a": (
                "8",
                "that is √64, for queries of variance 1. These are twice as large.",
            ),
            "b": (
                "16",
                "each of the 64 products has variance 4, together 256, and √256 is 16.",
            ),
            "c": (
                "256",
                "that is the variance. A typical score is as large as its root.",
            ),
        },
    ),
    2: Choice(
        "A mask made for `nn.MultiheadAttention` hides tokens 4 to 9 of ten. Ours gets it as "
        "it is. Where may a query look?",
        "a",
        {
            "a": (
                "only at tokens 4 to 9",
                "ours has `True` where a query may look, theirs where it may not.",
            ),
            "b": (
                "only at tokens 0 to 3, as meant",
                "that needs `~mask`: the two classes use `True` the other way round.",
            ),
            "c": (
                "nowhere: ours refuses that mask",
                "it is boolean, it fits, and each row has a `True`. Nothing tells that it is "
                "the wrong way round.",
            ),
        },
    ),
    3: Choice(
        "Somebody hides keys by a score of -1e9 in place of -inf. One query may look nowhere. "
        "What are its weights?",
        "b",
        {
            "a": (
                "nan",
                "that is what -inf gives, since 0 / 0 is no number. These scores are numbers.",
            ),
            "b": (
                "all equal: it looks at every hidden key",
                "softmax sees differences alone, and equal scores have none.",
            ),
            "c": (
                "all 0",
                "a row of softmax always sums to 1.",
            ),
        },
    ),
    4: Choice(
        "The softmax runs over the queries, `dim=-2`, with 197 tokens. A test takes the *mean* "
        "of all row sums. What does it find?",
        "a",
        {
            "a": (
                "1.00, as if all were right",
                "197 columns of sum 1 are 197 in all, shared by 197 rows. Only the single rows "
                "give it away.",
            ),
            "b": (
                "197",
                "that is the sum of the whole table. There are as many rows as columns to "
                "share it.",
            ),
            "c": (
                "0.005, or 1/197",
                "that is the mean *weight*, in a right table as well as in this one.",
            ),
        },
    ),
    5: Choice(
        "Twice as many tokens, the same width. What becomes of the work in one block?",
        "b",
        {
            "a": (
                "the Linears and the two products both double",
                "the products are for pairs of tokens, and there are four times as many pairs.",
            ),
            "b": (
                "the Linears double, the two products are four times as much",
                "a Linear works once for each token, N·D²; the products go with N²·D.",
            ),
            "c": (
                "both are four times as much",
                "a Linear knows nothing of pairs: each token more costs it the same.",
            ),
        },
    ),
    6: Choice(
        "A layer of width 768 gets 6 heads in place of 12. What becomes of its table of "
        "weights and of the work of the two products?",
        "c",
        {
            "a": (
                "both halve: half the heads, half of all",
                "each head is twice as wide, so each of its scores takes twice the products.",
            ),
            "b": (
                "both stay: the width is the same",
                "the work does. But each head has a table of its own, N·N, whatever its width.",
            ),
            "c": (
                "the table halves, the work stays",
                "6·N·N weights in place of 12·N·N; and 6 · 128 products a pair are 12 · 64.",
            ),
        },
    ),
    7: Choice(
        "All tokens have one and the same value, but queries and keys of their own. What do "
        "they read?",
        "a",
        {
            "a": (
                "all the same: that value",
                "every row of weights sums to 1, so any mixture of equal values is the value.",
            ),
            "b": (
                "each something else, by its weights",
                "weights choose between values. Here is nothing to choose.",
            ),
            "c": (
                "that value, divided by the number of tokens",
                "that is what each token adds if all weights are equal; N of these sum to the "
                "whole value again.",
            ),
        },
    ),
    8: Choice(
        "A query gives key B 0.6 of its weight. Then another token joins whose key is equal to "
        "B's. What does B get now?",
        "c",
        {
            "a": (
                "0.6, and so does the other",
                "the two alone would have more than the 1 that a query has to share.",
            ),
            "b": (
                "0.3: the two share what B had",
                "then the others would keep their 0.4. But the sum has grown, and all shares "
                "shrink.",
            ),
            "c": (
                "0.375",
                "B's power is 0.6 of the old sum, and the new sum is 1.6 of it: 0.6 / 1.6.",
            ),
        },
    ),
    9: Choice(
        "In a head 64 wide, every query and key has length 8. How large can a scaled score "
        "become at most?",
        "b",
        {
            "a": (
                "1",
                "that is the largest *cosine*. The lengths count as well: 8 · 8.",
            ),
            "b": (
                "8",
                "q · k is at most 8 · 8 = 64, where both point the same way, and 64 / √64 is 8.",
            ),
            "c": (
                "64",
                "that is before the division by √64.",
            ),
        },
    ),
    10: Choice(
        "A row is saturated: its weights are 1, 0 and 0, to the last digit. Where does a "
        "gradient still arrive?",
        "c",
        {
            "a": (
                "nowhere: the row hears nothing",
                "the first value is handed on in full, so the error depends on it.",
            ),
            "b": (
                "at the query",
                "a little change of the query changes no weight, and so not the result.",
            ),
            "c": (
                "at the first key's value",
                "it is what is read, with weight 1. Query and keys get nothing.",
            ),
        },
    ),
}
