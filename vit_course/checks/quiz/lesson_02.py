"""Lesson 02: ten questions, their answers, and why each is right or not."""

from ..choosing import Choice

QUESTIONS: dict[int, Choice] = {
    1: Choice(
        "Photos of 112×112 pixels, P = 16, D = 192: how many parameters has `TokenEmbedding`?",
        "c",
        {
            "a": (
                "9,600",
                "50 positions of 192. cls itself is a parameter too.",
            ),
            "b": (
                "9,408",
                "that is a position for each of the 49 patches. cls has one as well, and is "
                "itself learned.",
            ),
            "c": (
                "9,792",
                "50 positions and one cls token, 51 · 192.",
            ),
        },
    ),
    2: Choice(
        "The loss is the *mean* over the batch. A batch holds one image eight times. How large "
        "is the gradient of cls, beside that of the image alone?",
        "b",
        {
            "a": (
                "eight times as large",
                "that is the *sum* of eight losses. The mean divides by 8.",
            ),
            "b": (
                "the same",
                "the eight rows pull at one vector and their pulls are added, each an eighth.",
            ),
            "c": (
                "an eighth",
                "that is the pull of one row. cls is stored once and gets all eight.",
            ),
        },
    ),
    3: Choice(
        "Somebody forgets to normalise: the pixels run from 0 to 255. The positions start as "
        "ever, with a std of 0.02. What follows?",
        "a",
        {
            "a": (
                "the places are drowned: a patch is nearly the same token wherever it stands",
                "tokens are more than a hundred times as large, and positions are added as "
                "they are.",
            ),
            "b": (
                "nothing: positions are added, so their share stays what it was",
                "added, and not multiplied: beside a larger token, the same position counts less.",
            ),
            "c": (
                "the positions drown the patches",
                "that takes positions that are *larger* than the tokens, as `torch.randn` "
                "makes them.",
            ),
        },
    ),
    4: Choice(
        "A ViT without positions. Patches 3 and 7 change places. What becomes of its `features`?",
        "b",
        {
            "a": (
                "nothing: all 197 rows stay as they were",
                "cls stays. But row 4 now holds what became of the other patch: each token "
                "goes on from its own pixels.",
            ),
            "b": (
                "the rows of the two patches change places, and all else stays",
                "each token reads the same set of tokens as before. Only the order of the rows "
                "is another.",
            ),
            "c": (
                "all rows change: every token reads from those two",
                "it reads a sum over all tokens, and a sum does not depend on their order.",
            ),
        },
    ),
    5: Choice(
        "A head reads the mean of the patch tokens, not cls. Does such a ViT need positions to "
        "tell the photo from its mosaic?",
        "a",
        {
            "a": (
                "yes: a mean does not know the order of its terms",
                "the tokens come out in another order, and their mean is the same.",
            ),
            "b": (
                "no: unlike cls, the patches' tokens stand at different places",
                "they do, in the list. Averaging forgets where in the list.",
            ),
            "c": (
                "no: through attention every patch knows its neighbours",
                "attention does not see which tokens are neighbours, unless something in the "
                "tokens says it.",
            ),
        },
    ),
    6: Choice(
        "`torch.cat([cls.expand(64, -1, -1), patches], dim=1)`: how often does the result hold "
        "cls in memory?",
        "b",
        {
            "a": (
                "once: `expand` copies nothing",
                "`expand` does not. `cat` writes a new tensor, in which every number has its "
                "own place.",
            ),
            "b": (
                "64 times",
                "what `expand` saved was the copy before this one.",
            ),
            "c": (
                "64 times in training, once in eval",
                "`cat` knows nothing of modes. Look at `untyped_storage().nbytes()` in both.",
            ),
        },
    ),
    7: Choice(
        "By mistake cls is put last: `torch.cat([patches, cls], dim=1)`. Then positions are "
        "added, and the head reads token 0. What does it read?",
        "c",
        {
            "a": (
                "cls: attention does not see the order",
                "the head does: it takes row 0, whatever stands there.",
            ),
            "b": (
                "nothing: the positions no longer fit, which is an error",
                "there are still 197 tokens and 197 positions. All shapes are right.",
            ),
            "c": (
                "what became of the upper left patch, which got cls's position",
                "row 0 is patch 0 now. It runs, it trains, and one patch answers for all.",
            ),
        },
    ),
    8: Choice(
        "Four clocks with base 100 in place of 10,000. How many have made at least a quarter "
        "turn at place 13?",
        "b",
        {
            "a": (
                "one, as with 10,000",
                "the second turns by 0.32 radians a place now, not by 0.1: 236 degrees at "
                "place 13.",
            ),
            "b": (
                "two",
                "745 and 236 degrees. The third has made 74, the fourth 24.",
            ),
            "c": (
                "all four",
                "the slowest turns by 0.03 radians a place: 24 degrees at place 13.",
            ),
        },
    ),
    9: Choice(
        "Sine positions on a grid of 14×14, as in section 8. Which place is most like row 2, "
        "column 3?",
        "c",
        {
            "a": (
                "row 8, column 9",
                "it is far in both: neither half of its position is close.",
            ),
            "b": (
                "row 2, column 9",
                "the row's half is equal. But six columns are more of a difference than one "
                "row and one column.",
            ),
            "c": (
                "row 3, column 4",
                "both halves have turned by one place only.",
            ),
        },
    ),
    10: Choice(
        "Two photos stand in one batch. How far apart are their cls tokens *before* the first "
        "block?",
        "a",
        {
            "a": (
                "not at all",
                "one parameter, one position. What tells two photos apart comes into cls by "
                "attention.",
            ),
            "b": (
                "by the difference of their places in the batch",
                "positions count tokens within an image. The batch has none.",
            ),
            "c": (
                "by as much as the two photos differ",
                "cls has not read a patch yet: `cat` only puts it beside them.",
            ),
        },
    ),
}
