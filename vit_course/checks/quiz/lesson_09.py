"""Lesson 09: ten questions, their answers, and why each is right or not."""

from ..choosing import Choice

QUESTIONS: dict[int, Choice] = {
    1: Choice(
        "In block 1 cls looks at itself alone, and patch 1 at patch 2 alone. In block 2 cls takes "
        "half from itself and half from patch 1. So half of cls comes from patch 2. What does "
        "rollout say?",
        "c",
        {
            "a": (
                "a half too",
                "that is the plain product. Rollout puts half an identity beside each block's "
                "weights first.",
            ),
            "b": (
                "a quarter: the identity halves it",
                "it halves twice, once in each block: cls takes only a quarter from patch 1, and "
                "that is half patch 2.",
            ),
            "c": (
                "an eighth",
                "with half an identity cls takes 0.75 from itself and 0.25 from patch 1, and patch "
                "1 is half itself and half patch 2: 0.25 · 0.5.",
            ),
        },
    ),
    2: Choice(
        "On a canvas of 16 pixels, cut into 4×4 patches, a head that looks everywhere alike has a "
        "mean distance of 8.0 pixels. Now the same canvas is cut into 2×2 patches of 8 pixels. "
        "What has such a head?",
        "a",
        {
            "a": (
                "less than 8.0",
                "6.8: of four places one is a patch's own, two are 8 pixels away, one is 11.3. So "
                "compare a distance with an even head's on the same grid only.",
            ),
            "b": (
                "8.0, as the canvas is the same",
                "distances are taken from patch to patch, and of these there are others now.",
            ),
            "c": (
                "more than 8.0, as each patch is larger",
                "the largest distance shrinks, from 17 pixels to 11.3; and a quarter of each look "
                "now stays where it is.",
            ),
        },
    ),
    3: Choice(
        "An untrained ViT of four blocks looks everywhere alike: 1/17 for each of the 17 tokens. "
        "In rollout each of the 16 patches gets 0.055 of cls. Where are the other 0.12?",
        "b",
        {
            "a": (
                "lost: half an identity and half the weights do not sum to 1",
                "they do, row by row, and so do products of such matrices.",
            ),
            "b": (
                "on cls itself",
                "the halves of the identity keep (1/2)⁴ of cls, before any weight is counted. Its "
                "map of patches leaves that column out.",
            ),
            "c": (
                "spread over the patches: 0.055 is rounded down",
                "rounding makes less than 0.0005 a patch, 0.008 in all.",
            ),
        },
    ),
    4: Choice(
        "Map A has 60% of itself on a digit that touches 9 of 16 patches. Map B has 45% on a digit "
        "that touches 4 of 16. Which of them says more about where its model looks?",
        "b",
        {
            "a": (
                "A: 60% are more than 45%",
                "an even map would have 56% there: A is a few points above it.",
            ),
            "b": (
                "B",
                "an even map would have 25% on B's digit and 56% on A's: B has nearly twice that, "
                "A hardly more.",
            ),
            "c": (
                "neither: both are near a half, which is chance",
                "chance is the share of the patches themselves: 56% for A, and 25% for B.",
            ),
        },
    ),
    5: Choice(
        "Somebody takes the first 16 of cls's 17 shares in a rollout for the 16 patches, and the "
        "patch in the upper left corner is among the four brightest on every canvas. What has been "
        "drawn there?",
        "a",
        {
            "a": (
                "cls's share of itself",
                "token 0 is cls. Rollout keeps much of each token for itself, so that corner "
                "shines on every picture, and each patch is drawn one place too late.",
            ),
            "b": (
                "the corner patch: cls looks at the rim, where there is nothing to see",
                "the corner patch is token 1, and has been drawn in the second place.",
            ),
            "c": (
                "the last patch, which has come round to the front",
                "the last patch is token 16, and is not drawn at all.",
            ),
        },
    ),
    6: Choice(
        "With a mask, cls is blind to all 16 patches in all blocks. What does the model say of the "
        "500 canvases?",
        "c",
        {
            "a": (
                "nothing: a row of masked weights is NaN",
                "a row is NaN where all is masked. cls may still look at itself.",
            ),
            "b": (
                "any of the ten classes, by chance, picture by picture",
                "nothing in it is random. Print the answers.",
            ),
            "c": (
                "of all of them the same",
                "cls can look at itself alone, and begins as the same vector for every picture. So "
                "its logits are the same for all.",
            ),
        },
    ),
    7: Choice(
        "Covered in rollout's order, patch after patch, accuracy has an area of 0.16 under its "
        "curve; in a random order 0.49. Now cover in rollout's order from the *end*, the patch "
        "that it marks least first. What comes out?",
        "b",
        {
            "a": (
                "about 0.16 again: the order is as good, read backwards",
                "what matters is covered last now, so the accuracy stays up for long.",
            ),
            "b": (
                "more than 0.49",
                "about 0.9: the first patches to go are those that hardly matter, and a random "
                "order takes some of the others early.",
            ),
            "c": (
                "about 0.49: the least marked patches are as good as random ones",
                "a random order meets the digit early, this one meets it last.",
            ),
        },
    ),
    8: Choice(
        "The rollout of *another* canvas has 54% on the digit, an even map 44%. How can a map of "
        "another picture be better than chance?",
        "c",
        {
            "a": (
                "by luck: with 500 canvases ten points are nothing",
                "draw other canvases: the middle of the grid is touched more often in each draw.",
            ),
            "b": (
                "the two canvases show the same digit, mostly",
                "the classes are drawn by chance: the next canvas shows the same digit about one "
                "time in ten.",
            ),
            "c": (
                "digits touch the middle patches more often than the rim",
                "count in `places`: a patch in the middle is touched in about four canvases "
                "of five, a corner in one of five. Whatever is brighter in the middle scores.",
            ),
        },
    ),
    9: Choice(
        "cls gives 0.9 to patch 1 and 0.1 to patch 2. The *value* of patch 1 is (0, 0), that of "
        "patch 2 is (5, −5). Which of them changes cls?",
        "a",
        {
            "a": (
                "patch 2 alone",
                "0.9 · (0, 0) + 0.1 · (5, −5) = (0.5, −0.5). A map of weights would have drawn "
                "patch 1, as it does not ask what is mixed.",
            ),
            "b": (
                "patch 1 more than patch 2: nine times as much",
                "nine times as much of nothing is nothing: weights are only half of the mixture.",
            ),
            "c": (
                "both alike: the larger value makes up for the smaller weight",
                "it would have to make up for something: patch 1 adds (0, 0).",
            ),
        },
    ),
    10: Choice(
        "One block has two heads: one looks at patch 1 alone, the other at patch 2 alone. In "
        "another block both heads look half at each. What does rollout make of that?",
        "a",
        {
            "a": (
                "the same of both",
                "it takes the mean over the heads, and that is the same. So it cannot tell two "
                "heads that divide their work from two that do not.",
            ),
            "b": (
                "more of the first: a weight of 1 counts more than two of 0.5",
                "a mean does not ask how it came about: (1 + 0) / 2 is (0.5 + 0.5) / 2.",
            ),
            "c": (
                "less of the first: where the heads do not agree, they cancel",
                "weights are never below zero, so a mean of them cancels nothing.",
            ),
        },
    ),
}
