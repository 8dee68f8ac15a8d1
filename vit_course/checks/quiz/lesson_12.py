"""Lesson 12: ten questions, their answers, and why each is right or not."""

from ..choosing import Choice

QUESTIONS: dict[int, Choice] = {
    1: Choice(
        "A convolution with patches of 16 pixels cuts a picture of 250 pixels a side. How many "
        "pixels reach no token?",
        "b",
        {
            "a": (
                "5,000: ten rows and ten columns of 250",
                "their corner, 10 × 10 pixels, is in both, and was counted twice.",
            ),
            "b": (
                "4,900",
                "15 patches are 240 pixels, and 250² − 240² = 4,900: a rim ten pixels wide, on "
                "two sides.",
            ),
            "c": (
                "100: the corner alone",
                "a row that fills no patch is lost along its whole length.",
            ),
        },
    ),
    2: Choice(
        "Somebody's patcher counts its patches column by column. Which test against `patchify` "
        "sees it, on a picture of 32×64 pixels?",
        "a",
        {
            "a": (
                "one that compares the patches, one by one",
                "30 of the 32 stand elsewhere, and a comparison in order meets them.",
            ),
            "b": (
                "one that compares the shapes, as the picture is not square",
                "4 · 8 and 8 · 4 are both 32: the shape is the same on every picture.",
            ),
            "c": (
                "one that compares the mean over all patches",
                "the same patches in another order have the same mean.",
            ),
        },
    ),
    3: Choice(
        "An attention is measured on 197 tokens: its rows sum to 1.000, their entropy is 5.28, "
        "the largest weight of a row is 0.006. What do you suspect?",
        "c",
        {
            "a": (
                "the scale is missing",
                "then the scores lie far apart, and the entropy is low: one key takes most.",
            ),
            "b": (
                "it is scaled after the softmax",
                "then the rows would not sum to 1.",
            ),
            "c": (
                "its scores are next to nothing",
                "5.28 is ln 197, the most that there is: each key gets 1/197, whatever it holds. "
                "A scale that is far too strong does that, or weights that have not learned.",
            ),
        },
    ),
    4: Choice(
        "A mask forbids one of the queries all keys, and the scores there are filled with minus "
        "infinity. What does its row of weights hold?",
        "a",
        {
            "a": (
                "NaN, everywhere",
                "softmax divides by the sum of the row, and that is 0 / 0. In the next block that "
                "token is a key of all others, and they are NaN too.",
            ),
            "b": (
                "zeros: it looks nowhere",
                "softmax divides by the sum of the row. It has to share out 1, and there is "
                "nobody to get it.",
            ),
            "c": (
                "the same share for each key",
                "that is so where all are filled with one large *finite* number, such as −10⁹.",
            ),
        },
    ),
    5: Choice(
        "A branch is added as `x + 0 * branch(x)`. You list the parameters whose gradient is "
        "None, after a backward pass. What do you find of the branch?",
        "c",
        {
            "a": (
                "all its parameters: they have no say in the loss",
                "they have none, but they are in the graph: the gradient is computed, and comes "
                "out as 0.",
            ),
            "b": (
                "its first Linear alone, as the factor stands at its end",
                "the factor makes what comes back 0 for the last parameter and for the first.",
            ),
            "c": (
                "nothing",
                "None says that no path leads from the loss to it. Here a path does, and carries "
                "zeros: they are gradients of 0. So list both.",
            ),
        },
    ),
    6: Choice(
        "The doctor finds nothing in a model with loaded weights. Which of these may be wrong all "
        "the same?",
        "b",
        {
            "a": (
                "a block's tokens are never used",
                "the doctor runs a backward pass, and sees parameters without a gradient and a "
                "block that changes nothing.",
            ),
            "b": (
                "the pictures are prepared with another mean and std than it was trained with",
                "the doctor sees the model, not your pictures, and not what it was trained on. "
                "Measure the published accuracy.",
            ),
            "c": (
                "the same picture gives other logits each time, in eval",
                "the doctor asks that: it is its finding *random in eval*.",
            ),
        },
    ),
    7: Choice(
        "Heads are put side by side by `mixed.reshape(B, N, D)`, without a swap of axes. In which "
        "model does a test *not* see it?",
        "a",
        {
            "a": (
                "in one with a single head",
                "with one head (B, 1, N, d) and (B, N, 1, d) hold their numbers in the same "
                "order. So test with two at least.",
            ),
            "b": (
                "in one with as many heads as tokens",
                "then each token gets the whole of one head: all tokens' numbers, and of its own "
                "only one part.",
            ),
            "c": (
                "in one whose heads are one number wide",
                "(B, h, N, 1) is still head by head: a token's numbers must be gathered from all "
                "heads.",
            ),
        },
    ),
    8: Choice(
        "A block does `x += branch(norm(x))`, in place. You give a ViT of such blocks the same "
        "pictures twice, in eval. Do the logits differ?",
        "c",
        {
            "a": (
                "yes: the second time x is no longer what it was",
                "the x that is written over is made anew from the pictures each time.",
            ),
            "b": (
                "it stops with an error: a tensor was changed in place",
                "such an error comes from backward, and here is none.",
            ),
            "c": (
                "no, and so this check does not see it",
                "x is made from the pictures anew each time. Give a *block* your own tokens, and "
                "compare them with a copy afterwards.",
            ),
        },
    ),
    9: Choice(
        "A model of 1,000 classes ends in a softmax and is trained with `cross_entropy`. How low "
        "can its loss get?",
        "b",
        {
            "a": (
                "to 1.46, as always with a softmax too many",
                "that is −ln(e / (e + 9)), for ten classes.",
            ),
            "b": (
                "to 5.91",
                "−ln(e / (e + 999)). Guessing is 6.91: all that it can ever learn is one point.",
            ),
            "c": (
                "to 0, if it is trained for long enough",
                'its "logits" lie between 0 and 1, so the right class is at most e times as '
                "likely as another, and there are 999 others.",
            ),
        },
    ),
    10: Choice(
        "In a block of width 768 the products that mix tokens are the smaller part of the work. "
        "With how many tokens do they cost as much as its Linears?",
        "c",
        {
            "a": (
                "197, as in B/16",
                "there they are 4% of the block's work.",
            ),
            "b": (
                "768, when there are as many tokens as numbers in each",
                "then they are a seventh of the block's work: the Linears have 12 products where "
                "the mixing has 2.",
            ),
            "c": (
                "4,608",
                "12 · N · D² for the Linears and 2 · N² · D for the mixing are equal at N = 6 · D.",
            ),
        },
    ),
}
