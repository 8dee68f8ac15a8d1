"""Lesson 13: ten questions, their answers, and why each is right or not."""

from ..choosing import Choice

QUESTIONS: dict[int, Choice] = {
    1: Choice(
        "A ViT is twice as wide, 1,536 numbers instead of 768; pictures and depth stay. How does "
        "the work of the scores and the mixture grow?",
        "b",
        {
            "a": ("it stays", "each score is a sum over the width, so it grows with it."),
            "b": (
                "to twice as much",
                "N²·D: the pairs of tokens stay, and each pair has twice as many products.",
            ),
            "c": (
                "to four times as much",
                "so do the Linears, which go with D². Width stands once only in N²·D.",
            ),
        },
    ),
    2: Choice(
        "L/16 is 1,024 wide. At about how many tokens do scores and mixture cost as much as all "
        "the Linears of a block?",
        "c",
        {
            "a": ("at 1,024", "there they cost a sixth: 2·N²·D against 12·N·D² with N = D."),
            "b": ("at 4,608", "that is B/16's number, six times 768."),
            "c": ("at 6,144", "2·N²·D = 12·N·D² at N = 6·D, here 6 · 1,024."),
        },
    ),
    3: Choice(
        "A change takes 0.8 of the time, and its logits differ by more than the rounding of 32 "
        "bits. What do you know?",
        "b",
        {
            "a": (
                "that it is a gain",
                "not before you have measured what the other logits cost: it is another model.",
            ),
            "b": (
                "that the model is another one, and a little faster",
                "so the next question is its accuracy, not its speed.",
            ),
            "c": (
                "that it is wrong",
                "16 bits give other logits too, and name nearly all pictures the same.",
            ),
        },
    ),
    4: Choice(
        "A token of size 3 with the value 10 is merged into one of size 1 with the value 2. What "
        "is the value of the new one?",
        "a",
        {
            "a": ("8", "(3 · 10 + 1 · 2) / 4: it stands for four patches, three of them at 10."),
            "b": ("6", "that is the plain mean, in which three patches count no more than one."),
            "c": ("32", "that is the sum; a token is the mean of its patches, and stays as large."),
        },
    ),
    5: Choice(
        "Merging leaves 17, 15, 13 and 11 tokens before four blocks, with r = 2. How many does "
        "the head's norm see?",
        "c",
        {
            "a": ("17", "what is merged stays merged: nothing takes it apart again."),
            "b": ("11", "the last block merges too, after its attention."),
            "c": ("9", "the last block merges two of its 11 before its MLP."),
        },
    ),
    6: Choice(
        "A row of a weight is 0.2, -0.4, 1.27. To what does `int8_rows` turn its middle number?",
        "a",
        {
            "a": ("-40", "the scale is 1.27 / 127 = 0.01, and -0.4 / 0.01 = -40."),
            "b": ("-51", "that is -0.4 · 127 = -50.8, as if the largest number were 1."),
            "c": ("-127", "only the largest of the row becomes 127; this is a third of it."),
        },
    ),
    7: Choice(
        "A batch of ten goes through in pieces of 4, 3 and 3. By what do you multiply the mean "
        "loss of the first piece?",
        "c",
        {
            "a": ("1/3", "then an image of the first piece counts 1/12, one of the others 1/9."),
            "b": ("1/4", "that divides its mean by its size once more."),
            "c": ("2/5", "its share of the batch, 4 of 10: each image counts 1/10."),
        },
    ),
    8: Choice(
        "With checkpointed blocks, what does a model of 24 blocks keep for the way back, against "
        "one of 12 with the same width?",
        "b",
        {
            "a": (
                "as much: one block at a time",
                "the rest of a block is made again one at a time, but each block's input is kept.",
            ),
            "b": (
                "nearly twice as much",
                "an input a block: twice as many, and what lies before and after stays.",
            ),
            "c": (
                "nearly four times as much",
                "depth enters once, as it does without checkpointing.",
            ),
        },
    ),
    9: Choice(
        "Three processes share a batch of eight. By what does the third, with two images, multiply "
        "its mean loss, so that the mean of the gradients is that of the batch?",
        "b",
        {
            "a": ("1", "then its images count more than those of the other two: 1/6 against 1/9."),
            "b": ("3/4", "3 · 2 / 8: DDP divides by three, and each image counts 1/8."),
            "c": ("1/4", "its share of the batch, as in accumulation; but DDP divides by three."),
        },
    ),
    10: Choice(
        "AdamW trains a model of 100 million weights in 32 bits. FSDP cuts it over four processes. "
        "How much does each hold of weights, gradients and means?",
        "a",
        {
            "a": ("0.4 GB", "four numbers of four bytes a weight are 1.6 GB, a quarter each."),
            "b": ("0.1 GB", "that is a quarter of the weights alone."),
            "c": ("1.6 GB", "that is what each holds with data parallel training, uncut."),
        },
    ),
}
