"""Lesson 00: ten questions, their answers, and why each is right or not."""

from ..choosing import Choice

QUESTIONS: dict[int, Choice] = {
    1: Choice(
        "A photo has 300 rows of 400 pixels, in colour. Which shape does `load_image(path, "
        "size=None)` give?",
        "c",
        {
            "a": (
                "(400, 300, 3)",
                "that is width, height, channels. A tensor has the channels first, and the "
                "height before the width.",
            ),
            "b": (
                "(3, 400, 300)",
                "Pillow says width first; a tensor says (C, H, W), so the 300 rows come before "
                "the 400 columns.",
            ),
            "c": (
                "(3, 300, 400)",
                "channels, height, width: three channels, 300 rows, 400 columns.",
            ),
        },
    ),
    2: Choice(
        "A grey pixel holds the byte 102. Which number does the model get, with mean and std 0.5?",
        "a",
        {
            "a": (
                "-0.2",
                "102 / 255 is 0.4, and (0.4 - 0.5) / 0.5 is -0.2.",
            ),
            "b": (
                "0.4",
                "that is 102 / 255, before the mean is taken off and the rest divided by the std.",
            ),
            "c": (
                "0.2",
                "0.4 is darker than middle grey, 0.5, and what is darker than the mean comes "
                "out below 0.",
            ),
        },
    ),
    3: Choice(
        "`x.permute(2, 0, 1)` made (C, H, W) of (H, W, C). Which call leads back?",
        "b",
        {
            "a": (
                "the same once more: `permute(2, 0, 1)`",
                "that gives (W, C, H): the move goes round in a circle of three, so it takes "
                "two more of them.",
            ),
            "b": (
                "`permute(1, 2, 0)`",
                "in front what is axis 1 now, the height, then axis 2, the width, then axis 0, "
                "the channels.",
            ),
            "c": (
                "`permute(0, 2, 1)`",
                "that leaves the channels in front and swaps height and width.",
            ),
        },
    ),
    4: Choice(
        "By mistake a photo is normalised twice, each time with mean and std 0.5. Between "
        "which numbers does it lie then?",
        "b",
        {
            "a": (
                "-1 and 1: what is normalised stays so",
                "a second time the step takes off 0.5 again: -1 becomes (-1 - 0.5) / 0.5.",
            ),
            "b": (
                "-3 and 1",
                "white stays 1, since (1 - 0.5) / 0.5 is 1. Black goes from 0 to -1, and from "
                "there to -3.",
            ),
            "c": (
                "-2 and 2",
                "both ends would have to grow alike. But 1 is a number that the step leaves as "
                "it is.",
            ),
        },
    ),
    5: Choice(
        "A function turns bytes (H, W, 3) into floats (3, H, W). You test it with a square of "
        "one grey, 100 everywhere. Which mistake can you see?",
        "c",
        {
            "a": (
                "red and blue are swapped",
                "in grey the two are equal, and a swap changes nothing.",
            ),
            "b": (
                "`reshape` stands where `permute` should",
                "it deals the numbers out anew. When all are 100, it gives the right shape and "
                "the right numbers.",
            ),
            "c": (
                "the division by 255 is missing",
                "100 where 0.39 should be. What only changes the *place* of numbers needs "
                "numbers that differ.",
            ),
        },
    ),
    6: Choice(
        "All 1,000 logits of a photo are raised by 5. What does softmax make of that?",
        "a",
        {
            "a": (
                "the same shares as before",
                "each logit enters as a power of e. All powers grow by one factor, and "
                "dividing by their sum takes it out.",
            ),
            "b": (
                "the strongest class gets a larger share",
                "that happens when logits are *multiplied*, since their differences grow. Here "
                "no difference changes.",
            ),
            "c": (
                "all shares are larger",
                "they cannot be: the shares sum to 1.",
            ),
        },
    ),
    7: Choice(
        "How many attention weights does one block of ViT-B/16 make for one photo?",
        "c",
        {
            "a": (
                "197 · 768, as many as its tokens have numbers",
                "that is what leaves the block. A weight is for a *pair* of tokens.",
            ),
            "b": (
                "197 · 197, one for each pair of tokens",
                "that is one head. Each of the 12 heads has a table of its own.",
            ),
            "c": (
                "12 · 197 · 197",
                "12 heads, and in each every token looks at every token, itself included.",
            ),
        },
    ),
    8: Choice(
        "A photo is 600 pixels high and 512 wide. What does `load_image(path, size=224)` show "
        "of it?",
        "b",
        {
            "a": (
                "all of it, squeezed until it is square",
                "then a circle would become an oval. The course's `load_image` stretches nothing.",
            ),
            "b": (
                "the 512×512 in the middle, shrunk",
                "44 rows above and 44 below are cut off, and the square that is left is made "
                "smaller.",
            ),
            "c": (
                "the 224×224 pixels in the middle",
                "those would hold a part of the face. The picture is first cut to a square, as "
                "large as it can be, then shrunk.",
            ),
        },
    ),
    9: Choice(
        "Somebody forgets to divide by the std. You compare with the right function on a "
        "picture that is 0.5 everywhere. What does `difference` say, with mean and std 0.5?",
        "a",
        {
            "a": (
                "`< 1e-5`",
                "0.5 less the mean is 0, and 0 divided by anything is 0. This picture cannot "
                "show the mistake.",
            ),
            "b": (
                "`up to 0.5`",
                "black or white would show that: they should be 1 away from 0, and are 0.5. "
                "Here every pixel lies on the mean.",
            ),
            "c": (
                "`up to 1`",
                "no pixel from 0 to 1 can be that far off: even black becomes -0.5 where -1 is "
                "right.",
            ),
        },
    ),
    10: Choice(
        "All numbers of two patches lie from 0 to 1. What can the cosine of the two patches be?",
        "b",
        {
            "a": (
                "anything from -1 to 1",
                "below 0 the sum of the products would have to be negative, and none of these "
                "products is.",
            ),
            "b": (
                "from 0 to 1",
                "a product of two numbers that are not negative is not negative. So pictures "
                "that are not normalised all look a bit alike.",
            ),
            "c": (
                "above 0.5",
                "a patch that is black but for its upper half and one that is black but for "
                "its lower half have nothing in common: 0.",
            ),
        },
    ),
}
