"""Lesson 01: ten questions, their answers, and why each is right or not."""

from ..choosing import Choice

QUESTIONS: dict[int, Choice] = {
    1: Choice(
        "A photo is 96 pixels high and 160 wide, P = 16. Which patch lies directly under patch 7?",
        "c",
        {
            "a": (
                "patch 8",
                "that is its neighbour on the right: patches are counted along a row.",
            ),
            "b": (
                "patch 13",
                "that counts on by the 6 *rows* of patches. One row down is as far on as a row "
                "is long.",
            ),
            "c": (
                "patch 17",
                "a row has 160 / 16 = 10 patches, so the one below comes ten later.",
            ),
        },
    ),
    2: Choice(
        "Two grey images of 28×28 pixels go into `patchify` with P = 7. Which shape comes out?",
        "a",
        {
            "a": (
                "(2, 16, 49)",
                "28 / 7 is 4, so 16 patches an image, and 7 · 7 · 1 numbers in each.",
            ),
            "b": (
                "(2, 4, 196)",
                "4 is the number of patches in a row. There are 4 rows of them.",
            ),
            "c": (
                "(2, 49, 16)",
                "n comes before the numbers of a patch: 16 patches of 49, not 49 of 16.",
            ),
        },
    ),
    3: Choice(
        "`row` holds the 768 numbers of one patch, cut by `patchify`. Where are its 256 reds?",
        "b",
        {
            "a": (
                "`row[:256]`",
                "that would need the channels first. It holds all three colours of the patch's "
                "top five rows, and a third of the sixth.",
            ),
            "b": (
                "`row[0::3]`",
                "the three channels of a pixel stand together, so every third number is a red.",
            ),
            "c": (
                "`row[0::256]`",
                "that is three numbers, not 256: steps of 256 are right where all reds come "
                "first, to find a pixel's three colours.",
            ),
        },
    ),
    4: Choice(
        "In `patchify`'s pattern somebody turns two brackets round: `(p1 row)` and `(p2 col)`. "
        "The picture holds 0 to 15, row by row, P = 2. What is its first patch?",
        "b",
        {
            "a": (
                "0 1 4 5, as before: the names are the same",
                "within a bracket the last name changes fastest. With `row` last, neighbouring "
                "pixel rows go to different patches.",
            ),
            "b": (
                "0 2 8 10",
                "every second row and every second column: each patch is a coarse copy of the "
                "whole picture.",
            ),
            "c": (
                "0 1 2 3",
                "that is what `view` makes, a strip. Here rows and columns are still kept apart.",
            ),
        },
    ),
    5: Choice(
        "ViT-B/16 for grey pictures, one channel in place of three: how many parameters has "
        "its `PatchEmbedding`?",
        "c",
        {
            "a": (
                "196,864, a third of 590,592",
                "the weights become a third. But there are 768 biases, one a feature, however "
                "many channels there are.",
            ),
            "b": (
                "590,592: the token is still 768 wide",
                "there are still 768 templates, but each of them has a third of the numbers.",
            ),
            "c": (
                "197,376",
                "768 templates of 16 · 16 · 1 numbers are 196,608, and 768 biases.",
            ),
        },
    ),
    6: Choice(
        "Every number of one patch is doubled, after normalising. What becomes of its token?",
        "a",
        {
            "a": (
                "less the bias, it doubles",
                "an answer is a sum of products, and each product doubles. The bias is added "
                "once, as before.",
            ),
            "b": (
                "it doubles",
                "the bias is in the token too, and does not depend on the patch.",
            ),
            "c": (
                "it stays: a template only asks for a pattern",
                "it asks for pattern times size. That is why one black patch was loudest for "
                "66 templates.",
            ),
        },
    ),
    7: Choice(
        "A convolution with 16×16 templates moves on by 8 pixels, not by 16, over a photo of "
        "224×224. How many tokens does it make?",
        "a",
        {
            "a": (
                "729",
                "the last one that fits begins at pixel 208, and 208 / 8 + 1 = 27 a side. Such "
                "patches overlap.",
            ),
            "b": (
                "784",
                "28 a side would need a last one that begins at pixel 216 and hangs over the rim.",
            ),
            "c": (
                "196",
                "that is a step of 16, where each pixel is met once.",
            ),
        },
    ),
    8: Choice(
        "Patch A is -0.1 in all its numbers, patch B is -1. A itself is the template. How "
        "large is the answer of B beside that of A?",
        "b",
        {
            "a": (
                "smaller: nothing matches A better than A",
                "nothing points more nearly the same way. But the answer also grows with the "
                "patch's numbers.",
            ),
            "b": (
                "ten times as large",
                "each product is (-1) · (-0.1) = 0.1, where A with itself has 0.01.",
            ),
            "c": (
                "the same: both are one plain colour",
                "their cosine is the same, 1. An answer is not divided by the sizes.",
            ),
        },
    ),
    9: Choice(
        "You go from P = 16 to P = 8, all else the same. Which of these numbers becomes smaller?",
        "c",
        {
            "a": (
                "the tokens of a photo",
                "four times as many: half the side, a quarter of the area.",
            ),
            "b": (
                "the multiply-adds of attention",
                "four times the tokens are sixteen times the pairs.",
            ),
            "c": (
                "the parameters of the patch embedding",
                "each template shrinks from 768 numbers to 192.",
            ),
        },
    ),
    10: Choice(
        "One pixel of the photo changes, in red alone. What changes behind `PatchEmbedding`?",
        "b",
        {
            "a": (
                "one number of one token",
                "that is so behind `patchify`. Each of the 768 templates has a weight for that "
                "red.",
            ),
            "b": (
                "one token, all of its numbers",
                "the pixel lies in one patch, and every feature is a sum over all numbers of "
                "the patch.",
            ),
            "c": (
                "a little of each token",
                "patches do not overlap, so 195 of them do not hold that pixel. Only attention "
                "will spread it.",
            ),
        },
    ),
}
