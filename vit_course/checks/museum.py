"""Lesson 12: the question of each exhibit, its answers, and why each is right or not."""

from typing import Any

from .choosing import Choice

EXHIBITS: dict[int, Choice] = {
    # Shapes that lie
    1: Choice(
        "230 pixels a side give the 196 tokens that 224 would. What is wrong?",
        "b",
        {
            "a": (
                "nothing: the convolution scales the picture to what it needs",
                "a convolution scales nothing: each of its steps is 16 pixels, and 14 steps are "
                "224.",
            ),
            "b": (
                "6 rows and 6 columns of pixels reach no token",
                "14 patches of 16 pixels are 224. A convolution leaves out what does not fill a "
                "patch, without a word.",
            ),
            "c": (
                "the patches overlap a little, to cover the 230 pixels",
                "the stride is the kernel's size, so the patches lie side by side.",
            ),
        },
    ),
    2: Choice(
        "Each token is a sum of 768 products either way. What is wrong?",
        "a",
        {
            "a": (
                "inside a patch, the numbers stand in another order than the weights",
                "the convolution's weight runs (colour, row, column), the patch (row, column, "
                "colour): pixels meet other pixels' weights.",
            ),
            "b": (
                "the patches come in another order than the convolution's",
                "both go row by row: `(h w)` is the order that `flatten(2)` gives.",
            ),
            "c": (
                "nothing: the order of a sum's terms does not matter",
                "the order does not, but the pairing does: each pixel has a weight of its own.",
            ),
        },
    ),
    3: Choice(
        "The picture is wider than it is high, and `w` stands where its height is. What is wrong?",
        "c",
        {
            "a": (
                "patches are cut across: columns where rows should be",
                "a pattern's names are only names. The axis after `c` is the height, whatever it "
                "is called.",
            ),
            "b": (
                "patches are numbered column by column, so positions meet the wrong ones",
                "`(w h)` counts `h` fastest, and what is called `h` here runs along the width.",
            ),
            "c": (
                "only the names: every number is where it should be",
                "left and right of the arrow the two are swapped alike, and that cancels. Rename "
                "them all the same: the next reader will trust them.",
            ),
        },
    ),
    4: Choice(
        "A picture of 16 pixels meets the positions of one of 112 pixels. What happens?",
        "a",
        {
            "a": (
                "its one patch is copied to 49 places",
                "an axis of length 1 is stretched to any length: (1, 1, 768) + (1, 49, 768) gives "
                "49 tokens.",
            ),
            "b": (
                "one place is filled, and 48 hold a position alone",
                "nothing is filled up with zeros: an axis of length 1 is stretched instead.",
            ),
            "c": (
                "the patch gets the first position, the others are left over",
                "adding tensors never picks one of several: it needs equal lengths, or stretches.",
            ),
        },
    ),
    5: Choice(
        "The shape is right, (B, N, D). What is wrong?",
        "b",
        {
            "a": (
                "nothing: 12 heads of 64 numbers make the 768 of a token",
                "the count is right, and `reshape` asks for no more than that. Which numbers stand "
                "together is another matter.",
            ),
            "b": (
                "a token now holds numbers of other tokens, all from one head",
                "the axes stand (head, token, d). Without a swap, rows are cut off head 0 first.",
            ),
            "c": (
                "the heads stand side by side in another order than before",
                "that would do no harm: the Linear after it learns any order. Here numbers change "
                "their *token*.",
            ),
        },
    ),
    # Attention that does not sum
    6: Choice(
        "It is meant to be softmax(Q·Kᵀ / √d)·V, with 8 heads of 96. What is wrong?",
        "b",
        {
            "a": (
                "only the width: it must be √96, the rest is right",
                "the width is wrong too. But with √96 in this place the rows would still not sum "
                "to 1.",
            ),
            "b": (
                "it divides after the softmax",
                "softmax sees scores that are far too large, and then its rows, which summed to 1, "
                "are made 28 times smaller.",
            ),
            "c": (
                "it must divide after the values are mixed",
                "before or after `@ v` gives the same numbers: both are linear.",
            ),
        },
    ),
    7: Choice(
        "Both lines are meant to be the same attention. What is wrong?",
        "c",
        {
            "a": (
                "only the fused one: it has the wrong width, the other is right",
                "the separate one's rows sum to 0.102, not to 1.",
            ),
            "b": (
                "nothing that matters: they differ by a factor, and LayerNorm takes it out",
                "the branch is added to the tokens *before* a norm: its size decides how much it "
                "counts.",
            ),
            "c": (
                "both: the scale still stands behind the softmax",
                "the correction changed the number and left it in its place; and it reached only "
                "one of the two forms.",
            ),
        },
    ),
    8: Choice(
        "Now the scale stands before the softmax. What is wrong?",
        "a",
        {
            "a": (
                "it is too strong: every token looks at all others nearly alike",
                "a score sums 96 products, so its spread is √96. √768 makes it √8 times too small.",
            ),
            "b": (
                "the rows do not sum to 1",
                "they do: nothing comes after the softmax.",
            ),
            "c": (
                "nothing: 768 is the width of the tokens",
                "it is, but each head sees 96 of it, and it is the head's scores that are scaled.",
            ),
        },
    ),
    9: Choice(
        "`scores` is (B, h, N, N), heads on axis 1. What is wrong?",
        "b",
        {
            "a": (
                "it shares out over the queries: each column sums to 1",
                "that would be axis 2. Axis 1 is another one.",
            ),
            "b": (
                "it shares out over the heads: for each pair of tokens, they sum to 1",
                "the rows, which must sum to 1, sum to 197 / 8 on average.",
            ),
            "c": (
                "nothing: for a batch, axis 1 is where softmax belongs",
                "for logits (B, classes) it is. Here the keys are the last axis.",
            ),
        },
    ),
    10: Choice(
        "A query may look back only, and at itself. What is wrong?",
        "c",
        {
            "a": (
                "`~mask` is the wrong way round: it fills what may be seen",
                "`tril` is True at and below the diagonal, so `~mask` is what lies ahead.",
            ),
            "b": (
                "minus infinity gives NaN in the softmax",
                "e to the minus infinity is 0. NaN comes where a whole row is filled; here each "
                "query sees itself.",
            ),
            "c": (
                "the mask has no effect",
                "without `_`, `masked_fill` gives a new tensor, and nobody keeps it.",
            ),
        },
    ),
    11: Choice(
        "`attention` is given back, to be drawn. The model is in training. What is wrong?",
        "a",
        {
            "a": (
                "what is given back is not what the softmax gave",
                "dropout has set some weights to zero and raised the others.",
            ),
            "b": (
                "attention weights must never get dropout",
                "they may: published ViTs have it there, and it does what dropout does elsewhere.",
            ),
            "c": (
                "the values are mixed by rows that do not sum to 1",
                "that is so, and meant: on average they do. It is the drawing that is not meant.",
            ),
        },
    ),
    12: Choice(
        "The inner `with` is to keep the scores in 32 bits. On a CPU, what is wrong?",
        "b",
        {
            "a": (
                "nothing: in the inner block all is 32 bits",
                "print `scaled.dtype`.",
            ),
            "b": (
                "it switches off another device's autocast: here 16 bits go on",
                "each kind of device has a switch of its own, and `cuda` is written into the code.",
            ),
            "c": (
                "autocast does nothing on a CPU: the scores were in 32 bits anyway",
                "it does: matrix products take 16 bits under it, on a CPU too.",
            ),
        },
    ),
    # Parameters that never learn
    13: Choice(
        "It collects the attention of every block, and then gives logits. What is wrong?",
        "b",
        {
            "a": (
                "`[1]` takes the tokens; the weights are `[0]`",
                "a block gives (tokens, weights): lesson 05.",
            ),
            "b": (
                "no block's tokens are used",
                "`x` is never replaced: all blocks see what the first one sees, and the head reads "
                "it as it was.",
            ),
            "c": (
                "the list keeps all maps in memory, so it runs out",
                "it keeps four small ones, as was asked. That spoils no number.",
            ),
        },
    ),
    14: Choice(
        "A norm and a GELU, one after the other. What is wrong?",
        "a",
        {
            "a": (
                "GELU gets the tokens as they came: the norm's result is thrown away",
                "`x2` is written twice, and both times made from `x`.",
            ),
            "b": (
                "`x2` is changed in place, and backward will complain",
                "nothing is in place: each line makes a new tensor, under an old name.",
            ),
            "c": (
                "GELU must come first, then the norm",
                "the norm comes first, as it stands: it keeps what follows at one size.",
            ),
        },
    ),
    15: Choice(
        "Patches of a photo, and positions that will be learned. What is wrong?",
        "a",
        {
            "a": (
                "the positions are so large that the picture hardly counts",
                "they start with a spread of 1, more than the patches have.",
            ),
            "b": (
                "neighbouring places start with positions that have nothing in common",
                "so they do with any random start, the repaired one too: they are to be learned.",
            ),
            "c": (
                "positions belong after the first LayerNorm",
                "they are added once, before the first block (the paper's equation 1).",
            ),
        },
    ),
    16: Choice(
        "`nn.Sequential([…])` raised a TypeError, and so the list became plain. What is wrong?",
        "c",
        {
            "a": (
                "the four blocks are one block, four times in the list",
                "the comprehension makes a new block at each turn.",
            ),
            "b": (
                "a list cannot be run: the loop over it will raise an error",
                "`for block in body.blocks` runs, and gives the right numbers.",
            ),
            "c": (
                "the optimizer never sees the blocks",
                "a module finds parameters in modules that it holds, and does not look into lists.",
            ),
        },
    ),
    17: Choice(
        "Of the three biases, the keys' has no gradient. What is wrong?",
        "c",
        {
            "a": (
                "the keys are cut off from the loss: they never learn",
                "their *weights* have a gradient, as the next cell shows.",
            ),
            "b": (
                "fused q, k and v are cut apart in the wrong order",
                "then the rows of zeros would be spread over all three.",
            ),
            "c": (
                "nothing: the equation of attention gives them none",
                "a key's bias adds one number to all scores of a row, and softmax does not see it.",
            ),
        },
    ),
    # Train against eval
    18: Choice(
        "A residual: what the branch gives, plus what came in. In eval, what is wrong?",
        "a",
        {
            "a": (
                "the caller's `x` is changed",
                "in eval Dropout gives back the very tensor that it got, and `+=` writes into it.",
            ),
            "b": (
                "in eval the branch must be multiplied by 0.9",
                "that was so in old papers. PyTorch scales by 1 / 0.9 in training instead.",
            ),
            "c": (
                "`+=` makes backward fail, always",
                "only where the overwritten numbers are needed again, as behind a ReLU.",
            ),
        },
    ),
    19: Choice(
        "The model is in eval, to be used. What is wrong?",
        "b",
        {
            "a": (
                "nothing: `model.eval()` switches dropout off",
                "it switches modules off, `nn.Dropout`. A function is told nothing.",
            ),
            "b": (
                "dropout is still on: the same picture gives other logits each time",
                "`F.dropout` has its own `training`, and by default it is True.",
            ),
            "c": (
                "dropout must not stand before a head",
                "it may; the question is when.",
            ),
        },
    ),
    20: Choice(
        "The model is as sure as can be, and right. What is wrong?",
        "c",
        {
            "a": (
                "the label must be a row of ten, with a 1 in the right place",
                "`cross_entropy` takes the number of the class.",
            ),
            "b": (
                "`dim=-1` is the batch: it must be the classes",
                "(batch, classes): the last axis is the classes.",
            ),
            "c": (
                "the loss cannot come near 0, however right the model is",
                "`cross_entropy` takes a softmax itself. It gets numbers from 0 to 1 as logits.",
            ),
        },
    ),
    21: Choice(
        "A share of 0.9 of 10 tokens is to be masked. How many does this line keep?",
        "a",
        {
            "a": (
                "0: and one token was meant",
                "1 - 0.9 is a hair less than 0.1 in a computer, and `int` cuts off.",
            ),
            "b": (
                "1: ten times a tenth",
                "on paper. Run it: a computer's 1 - 0.9 is less than 0.1.",
            ),
            "c": (
                "9: the ratio is what stays",
                "here it is what is masked; what stays is 1 - ratio.",
            ),
        },
    ),
    22: Choice(
        "Every place of the 49 gets a norm over the batch; in training 5 tokens are masked. What "
        "is wrong?",
        "b",
        {
            "a": (
                "nothing: a norm takes as many tokens as come",
                "LayerNorm does. This one keeps a mean for each of 49 places.",
            ),
            "b": (
                "44 tokens stay, and their places change: there are 49 means",
                "and those that stay are shuffled: place 7 is another part of the face in each "
                "sample.",
            ),
            "c": (
                "it must be `nn.BatchNorm1d(768)`, one mean for each number of a token",
                "that would fail on (B, N, D) at once: this module takes axis 1, the tokens.",
            ),
        },
    ),
    23: Choice(
        "12 of 49 tokens went through the blocks; now the gaps are filled. What is wrong?",
        "c",
        {
            "a": (
                "`order` is used the wrong way round: tokens come to wrong places",
                "`order` says where each token went, so taking along it brings each one home.",
            ),
            "b": (
                "37 gaps cannot share one mask token: each needs its own",
                "they may share it, as all pictures share cls. Something must be added to it.",
            ),
            "c": (
                "all gaps hold the same row: nothing says which place they are",
                "their positions went with the tokens that were masked.",
            ),
        },
    ),
    # Files and counts
    24: Choice(
        "The file's rows run (qkv h d). It loads without a word. What is wrong?",
        "b",
        {
            "a": (
                "only the heads change places, and the Linear after them was trained on that",
                "then a query would still hold a query's numbers. But the file's second row is a "
                "query's, and is read as a key's.",
            ),
            "b": (
                "queries, keys and values are mixed up",
                "the code reads rows as (h d qkv): three neighbours are taken for a query's, a "
                "key's and a value's number.",
            ),
            "c": (
                "nothing: it would not load if the order were wrong",
                "loading compares names and shapes. An order is neither.",
            ),
        },
    ),
    25: Choice(
        "The line counts 210 patches and one position for cls. What is wrong?",
        "c",
        {
            "a": (
                "it is read as `(size * size // patch) ** 2`",
                "`**` binds before `//`: it is 53,824 // 256, which is 210.",
            ),
            "b": (
                "`+ 1` is one too many: cls needs no position",
                "cls has a position as every token does (lesson 02).",
            ),
            "c": (
                "it counts by area: parts of patches at the rim add up to whole ones",
                "14 whole patches fit into a side of 232 pixels, and 14 · 14 is 196.",
            ),
        },
    ),
    26: Choice(
        "This count stands in the notes as the work of the whole model. What is wrong?",
        "c",
        {
            "a": (
                "there are 50 tokens: cls is missing",
                "this ViT has none; and one token more would change the count by 4%.",
            ),
            "b": (
                "a multiply and an add are two operations: it must be doubled",
                "that is a matter of words, and of a factor 2. Far more is missing here.",
            ),
            "c": (
                "it is the work of two products in each block; the Linears are missing",
                "Q·Kᵀ and weights·V alone. Every Linear, the patches and the head are left out.",
            ),
        },
    ),
}


def exhibit(number: int, choice: Any = ...) -> None:
    """Print the question of an exhibit, or what its answer is worth.

    Args:
        number: of the exhibit, from 1.
        choice: a letter; `...` for none yet.

    Raises:
        ValueError: no exhibit has that number.
    """
    if type(number) is not int or number not in EXHIBITS:
        raise ValueError(f"no exhibit {number!r}; give a number from 1 to {len(EXHIBITS)}")
    EXHIBITS[number](choice)
