"""Lesson 05: ten questions, their answers, and why each is right or not."""

from ..choosing import Choice

QUESTIONS: dict[int, Choice] = {
    1: Choice(
        "24 layers of f(x) = -0.1·x, each *added* to what comes in. Which gradient arrives at "
        "the start?",
        "a",
        {
            "a": (
                "0.08",
                "each layer multiplies it by 1 - 0.1, and 0.9 to the 24th is 0.08.",
            ),
            "b": (
                "1e-24",
                "that is 0.1 to the 24th: layers that *replace*.",
            ),
            "c": (
                "9.8",
                "that is 1.1 to the 24th, for f(x) = +0.1·x. Here each layer takes a tenth away.",
            ),
        },
    ),
    2: Choice(
        "A fresh LayerNorm gets the tokens [2, 4] and [102, 104]. What does it make of them?",
        "c",
        {
            "a": (
                "the second comes out about 25 times as large",
                "the mean is taken off first, and 102 and 104 lie 1 to each side of it.",
            ),
            "b": (
                "the second comes out nearly 0: its gap is small beside 103",
                "it is divided by its standard deviation, not by its mean.",
            ),
            "c": (
                "the same: [-1, 1]",
                "both lie 1 to each side of their mean. What all numbers of a token share is "
                "taken off.",
            ),
        },
    ),
    3: Choice(
        "`mlp_ratio` is 2 in place of 4. How much of a block's parameters goes?",
        "b",
        {
            "a": (
                "half",
                "only the MLP halves. Attention keeps its 4·D².",
            ),
            "b": (
                "about a third",
                "4·D² of 12·D²: the MLP has two thirds of the block, and half of that goes.",
            ),
            "c": (
                "about a quarter",
                "that would be so if the MLP had half of the block. It has 8·D² of 12·D².",
            ),
        },
    ),
    4: Choice(
        "In a block every token may look only at itself, by its mask. Token 3 changes. Which "
        "tokens change behind the block?",
        "a",
        {
            "a": (
                "token 3 alone",
                "norm, MLP and sum work on each token by itself. Attention was the only way "
                "between them.",
            ),
            "b": (
                "all: the MLP mixes them",
                "a Linear acts on the last axis, on the numbers *in* a token.",
            ),
            "c": (
                "all: the norm averages over the tokens",
                "LayerNorm averages over the D numbers of one token.",
            ),
        },
    ),
    5: Choice(
        "In every block, weights and biases of `proj` and `fc2` are set to 0. What does the "
        "encoder give?",
        "b",
        {
            "a": (
                "zeros",
                "the branches give zeros. They are added to what came in, not put in its place.",
            ),
            "b": (
                "the tokens that came in",
                "each branch adds 0, and the road goes straight through. Doing nothing is easy "
                "for such a block.",
            ),
            "c": (
                "the tokens that came in, normed",
                "the norms stand in the branches. The road runs through none of them.",
            ),
        },
    ),
    6: Choice(
        "Tokens of standard deviation 50 enter a fresh *post-norm* block. How large are they "
        "when they leave?",
        "b",
        {
            "a": (
                "about 50: a fresh block adds little",
                "that is pre-norm, where the road passes by the norms.",
            ),
            "b": (
                "about 1",
                "the last step of a post-norm block is a norm on the road itself.",
            ),
            "c": (
                "about 0: two norms divide twice by 50",
                "the second norm divides by what the first one left, and that is about 1.",
            ),
        },
    ),
    7: Choice(
        "A block's last line should be `x = x + self.mlp(self.norm2(x))`, and the `x +` is "
        "missing. Which check finds it?",
        "c",
        {
            "a": (
                "the shapes",
                "the MLP gives (B, N, D), with the sum and without.",
            ),
            "b": (
                "one `backward()`: some `grad` stays `None`",
                "all parts are used, so all of them get a gradient.",
            ),
            "c": (
                "set `proj` and `fc2` to 0: the block must give what it got",
                "this one gives zeros: what came in is not on the road any more.",
            ),
        },
    ),
    8: Choice(
        "-0.7 and -3 go through GELU. Which comes out lower?",
        "a",
        {
            "a": (
                "-0.7",
                "it becomes -0.17, in the dip. Far to the left the curve comes back to 0.",
            ),
            "b": (
                "-3: the farther left, the lower",
                "it becomes -0.004: nearly nothing is left of it, as with ReLU.",
            ),
            "c": (
                "neither: both become 0",
                "that is ReLU. GELU lets a little of them through.",
            ),
        },
    ),
    9: Choice(
        "One of the 768 numbers of a token is a thousand times as large as the others. What "
        "does LayerNorm make of the others?",
        "b",
        {
            "a": (
                "what it would without: each number is normed by itself",
                "mean and standard deviation are those of all 768, and the large one is in both.",
            ),
            "b": (
                "nearly one and the same number",
                "it makes the standard deviation large, about 36 times theirs, and everything "
                "is divided by that.",
            ),
            "c": (
                "noise about 0 of size 1, as always",
                "the *whole* token has standard deviation 1. Nearly all of that is the one "
                "large number.",
            ),
        },
    ),
    10: Choice(
        "A checkpoint was trained with a norm's eps of 1e-6, and is run with 1e-5. Which "
        "tokens come out changed the most?",
        "c",
        {
            "a": (
                "the loud ones: they have most to lose",
                "beside a variance of 1, neither eps can be seen.",
            ),
            "b": (
                "all by the same factor",
                "eps is added to the *variance* of each token, so it depends on the variance "
                "how much it counts.",
            ),
            "c": (
                "the faint ones",
                "where the variance is itself about 1e-6, eps decides how large the token "
                "comes out.",
            ),
        },
    ),
}
