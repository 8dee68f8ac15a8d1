"""Lesson 03: ten questions, their answers, and why each is right or not."""

from ..choosing import Choice

QUESTIONS: dict[int, Choice] = {
    1: Choice(
        "The keys A, B and C score 1, 1 and 2. Which share does C get?",
        "b",
        {
            "a": (
                "0.50",
                "that shares out the scores themselves, 2 of 4. Softmax shares out powers of e.",
            ),
            "b": (
                "0.58",
                "C gets e times what each of the others gets: 2.72 of 1 + 1 + 2.72.",
            ),
            "c": (
                "0.73",
                "e of 1 + e: that is C against one other key. There are two.",
            ),
        },
    ),
    2: Choice(
        "The keys A, B and C are (1, 0), (0, 1) and (1, 1). The query (1, 2) found C. Now it "
        "is turned round: (-1, -2). Who gets the largest weight?",
        "a",
        {
            "a": (
                "A",
                "the scores are -1, -2 and -3, and the largest of them is A's.",
            ),
            "b": (
                "C: the match is as strong, only negative",
                "softmax keeps the sign: a score of -3 gives the smallest share, not the largest.",
            ),
            "c": (
                "nobody: all weights are negative",
                "e to any power is positive. The three shares still sum to 1.",
            ),
        },
    ),
    3: Choice(
        "The values of three tokens are single numbers: 2, 3 and 7. Which of these can a head "
        "read?",
        "b",
        {
            "a": (
                "1.5",
                "a weighted mean is never below the smallest value, 2.",
            ),
            "b": (
                "6",
                "with most of the weight on 7: 6 = 0.2 · 2 + 0.8 · 7.",
            ),
            "c": (
                "12",
                "that is the sum. Weights sum to 1, so no read exceeds 7.",
            ),
        },
    ),
    4: Choice(
        "The token of the eye changes, and with it the eye's query, key and value. Whose "
        "*reads*, weights times values, change?",
        "b",
        {
            "a": (
                "the eye's alone",
                "that holds for queries, keys and values. A read mixes the values of all tokens.",
            ),
            "b": (
                "those of all tokens",
                "each has the eye among its keys, and its value in the mixture: no weight of a "
                "softmax is 0.",
            ),
            "c": (
                "those of all tokens but the eye",
                "the eye asks another question now, and its own value changed as well.",
            ),
        },
    ),
    5: Choice(
        "`split_heads` cuts (1, 5, 12) into 3 heads. Where does head 1 of token 4 come from?",
        "a",
        {
            "a": (
                "columns 4 to 7 of token 4",
                "each head has 12 / 3 = 4 columns: head 0 has 0 to 3, head 1 the next four.",
            ),
            "b": (
                "columns 1, 4, 7 and 10 of token 4",
                "that reads the width as (d h). The order is (h d): a head's columns stand "
                "side by side.",
            ),
            "c": (
                "columns 3 to 5 of token 4",
                "that would be heads of 3 columns: 3 is how many heads there are.",
            ),
        },
    ),
    6: Choice(
        "The wrong split, `x.view(B, h, N, d)`, is tested with an `x` of shape (2, 1, 8) and 4 "
        "heads, against the right one. What does the test say?",
        "a",
        {
            "a": (
                "right",
                "with one token there is nothing to mix up: swapping an axis of length 1 moves "
                "no number.",
            ),
            "b": (
                "wrong: the heads are mixed up",
                "they are cut where they should be. It is tokens that `view` mixes up, and "
                "here is one.",
            ),
            "c": (
                "an error: 8 numbers do not make 4 heads of one token",
                "4 heads of 2 numbers: (2, 4, 1, 2).",
            ),
        },
    ),
    7: Choice(
        "D = 12 and 3 heads; the fused weight is in the order (qkv h d). Whose is its row 30?",
        "b",
        {
            "a": (
                "the keys', head 1",
                "rows 12 to 23 are the keys'. From 24 on come the values.",
            ),
            "b": (
                "the values', head 1",
                "30 is 24 + 6: past the queries and keys, and 6 lies in the second four rows.",
            ),
            "c": (
                "the values', head 2",
                "head 2 has the last four of the values' rows, 32 to 35.",
            ),
        },
    ),
    8: Choice(
        "ViT-B/16 gets 6 heads in place of 12. What changes?",
        "c",
        {
            "a": (
                "the number of parameters: it halves",
                "qkv and proj are as large as before. The head count is in none of them.",
            ),
            "b": (
                "how many tokens a head sees: half of them",
                "each head sees all 197. What is shared out among the heads is the width.",
            ),
            "c": (
                "the width of a head: it doubles",
                "768 / 6 = 128 numbers for each query, and fewer sets of weights.",
            ),
        },
    ),
    9: Choice(
        "The 12 heads of q, k and v are all put in reverse order. What does `merge_heads` give "
        "then?",
        "c",
        {
            "a": (
                "the same as before: a head does not know its number",
                "it does not, and so each reads the same. But merging lays them side by side "
                "in their order.",
            ),
            "b": (
                "other numbers throughout: queries meet keys of other heads",
                "q and k were reversed alike, so each query still meets its own head's keys.",
            ),
            "c": (
                "the same numbers, in 12 groups of reverse order",
                "each lookup is as it was. Only the places of 64 columns have changed.",
            ),
        },
    ),
    10: Choice(
        "With k = q, can a token score higher with another token than with itself?",
        "c",
        {
            "a": (
                "no: nothing matches it better than itself",
                "in direction nothing does. But a score also grows with the other's length.",
            ),
            "b": (
                "no, but it can score the same",
                "take (1, 0) and (3, 0): the first scores 1 with itself, and 3 with the second.",
            ),
            "c": (
                "yes, if the other's query is longer",
                "q · q is the length squared; along the same direction a longer one gives more.",
            ),
        },
    ),
}
