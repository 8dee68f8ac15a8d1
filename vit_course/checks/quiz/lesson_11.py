"""Lesson 11: ten questions, their answers, and why each is right or not."""

from ..choosing import Choice

QUESTIONS: dict[int, Choice] = {
    1: Choice(
        "System C holds its 49 positions and its mask token as bare parameters of the whole model, "
        "768 numbers each. By how much is a count of the leaves alone too small?",
        "a",
        {
            "a": (
                "by 38,400",
                "50 times 768: the whole model has children, so it is no leaf, and nobody asks it "
                "for its own parameters.",
            ),
            "b": (
                "by 768: the mask token",
                "the positions are as bare as the mask token is.",
            ),
            "c": (
                "by nothing: C has no cls token",
                "it is not cls that such a count overlooks, but every bare parameter of a module "
                "that holds others.",
            ),
        },
    ),
    2: Choice(
        "Before the end, all tokens of a picture become ten times as long, each alike. Which order "
        "gives other logits then?",
        "c",
        {
            "a": (
                "the mean first, then the norm",
                "the mean becomes ten times as long as well, and the norm behind it takes that "
                "away. One long token *among* short ones would be heard.",
            ),
            "b": (
                "the norm first, then the mean",
                "the norm brings each token to the same size, whatever its length was.",
            ),
            "c": (
                "neither of the two",
                "there is a norm in both, and it takes a common factor away, before the mean or "
                "after it. The orders differ where *some* tokens are longer.",
            ),
        },
    ),
    3: Choice(
        "A fused weight for D = 4 and two heads has twelve rows, 0 to 11, in the order (h d qkv). "
        "What is row 5?",
        "b",
        {
            "a": (
                "the second row of the keys",
                "in the order (qkv h d) it is: four of q, and then the second of k.",
            ),
            "b": (
                "the second row of the values",
                "q, k, v of the first number, then q, k, v of the second: row 5 is the sixth.",
            ),
            "c": (
                "the third row of the queries",
                "every third row is a query's: 0, 3, 6 and 9.",
            ),
        },
    ),
    4: Choice(
        "A grid of 4×4 patches is counted column by column where row by row is meant. How many "
        "patches are in their place all the same?",
        "c",
        {
            "a": (
                "2: the first and the last",
                "that is so on the lesson's grid of 4×8. A square has more.",
            ),
            "b": (
                "all 16: on a square the two are the same",
                "the *shape* is the same. Row 0, column 1 is patch 1 by rows, and 4 by columns.",
            ),
            "c": (
                "4",
                "those on the diagonal, where row and column have the same number.",
            ),
        },
    ),
    5: Choice(
        "DropPath's rate rises in a straight line from 0 to 0.3 over 12 blocks, each with two "
        "branches. How many of its 24 branches does a picture miss, on average?",
        "b",
        {
            "a": (
                "7.2: three of ten",
                "only the last block leaves out three of ten. The first leaves out none.",
            ),
            "b": (
                "3.6",
                "the rates of a straight line from 0 to 0.3 are 0.15 on average, and 24 · 0.15 is "
                "3.6.",
            ),
            "c": (
                "0.6: only the last block has that rate",
                "the other blocks have rates of their own, from 0 up.",
            ),
        },
    ),
    6: Choice(
        "A backward pass does about twice the work of a forward pass. How much more work is a "
        "training step with checkpointing, if every block is computed again?",
        "a",
        {
            "a": (
                "a third more",
                "1 + 2 parts without it, and 1 + 1 + 2 with it: 4 in place of 3.",
            ),
            "b": (
                "twice as much: all is computed twice",
                "only the forward pass is done again. The gradients are computed once.",
            ),
            "c": (
                "none: it trades memory only",
                "what was not kept has to be computed again: that is the price of the memory.",
            ),
        },
    ),
    7: Choice(
        "Five tokens draw the noise 0.2, 0.9, 0.4, 0.1, 0.7, and two of them stay. What does "
        "`random_masking` give as the tokens that were kept?",
        "c",
        {
            "a": (
                "tokens 0 and 3, in this order",
                "these two stay, but the kept ones come as they were sorted, by their noise.",
            ),
            "b": (
                "tokens 1 and 4, with the largest noise",
                "`argsort` begins with the smallest, and the first two are kept.",
            ),
            "c": (
                "tokens 3 and 0, in this order",
                "0.1 is the smallest, 0.2 the next. `order` remembers who went where: token 3 to "
                "place 0, token 0 to place 1.",
            ),
        },
    ),
    8: Choice(
        "Somebody's `unmask` adds the positions to *all* tokens at the end, not to the gaps alone. "
        "What is wrong then?",
        "a",
        {
            "a": (
                "the kept tokens have their positions twice",
                "theirs were added before the masking, and have gone through the blocks. The gaps "
                "have theirs once, as is right.",
            ),
            "b": (
                "the gaps have their positions twice",
                "a mask token comes without a position: the gaps get theirs here for the first "
                "time.",
            ),
            "c": (
                "nothing: every token needs a position",
                "every token needs one, once. The kept ones have brought theirs along.",
            ),
        },
    ),
    9: Choice(
        "Take numbers n of tokens for which n · (1 − ratio) is a whole number. With which ratio is "
        "`int(n * (1 - ratio))` right for *every* such n up to 1,000?",
        "b",
        {
            "a": (
                "0.9",
                "1 − 0.9 comes out a hair below 0.1, and for n = 10 `int` gives 0.",
            ),
            "b": (
                "0.75",
                "a float holds halves, quarters, eighths and their sums exactly. 0.9 and 0.8 it "
                "cannot hold.",
            ),
            "c": (
                "0.8",
                "1 − 0.8 comes out a hair below 0.2, and for n = 10 `int` gives 1.",
            ),
        },
    ),
    10: Choice(
        "With QK-norm the weights of queries and keys may grow as they like, and attention stays "
        "even. Can it become sharp at all, then?",
        "b",
        {
            "a": (
                "no: a norm always gives numbers of one size",
                "so it does before its own scale, which is a parameter, and multiplies them.",
            ),
            "b": (
                "yes: the norms have scales of their own, and these can grow",
                "set `weight` of both LayerNorms to 4, and the largest weight of a row goes from "
                "a twentieth to nearly nine tenths. But it takes that, not a drift of the Linears.",
            ),
            "c": (
                "yes: longer tokens have larger scores, norm or not",
                "queries and keys are normed after the Linear: their length has no say.",
            ),
        },
    ),
}
