"""Lesson 06: ten questions, their answers, and why each is right or not."""

from ..choosing import Choice

QUESTIONS: dict[int, Choice] = {
    1: Choice(
        "ViT-B/16 is to name 10 classes, not 1,000. How many parameters does it lose?",
        "b",
        {
            "a": (
                "760,320",
                "990 rows of 768 weights. Each class has a bias as well.",
            ),
            "b": (
                "761,310",
                "990 classes, each with 768 weights and one bias.",
            ),
            "c": (
                "149,771,160",
                "that would be a head on all 197 tokens. It reads one.",
            ),
        },
    ),
    2: Choice(
        "ViT-B/16 for photos of 448×448 pixels in place of 224×224: what does it have more of?",
        "a",
        {
            "a": (
                "588 positions",
                "28 · 28 patches in place of 14 · 14. All else takes any number of tokens.",
            ),
            "b": (
                "nothing: a ViT takes photos of any size",
                "there is one learned position for each place of the grid.",
            ),
            "c": (
                "588 positions, and templates for them",
                "all patches share the same 768 templates, however many they are.",
            ),
        },
    ),
    3: Choice(
        "How much of the work of B/16 does B/32 take, for one photo?",
        "c",
        {
            "a": (
                "about a sixteenth: a quarter of the tokens, squared",
                "that holds for the two products of attention, and they are 4% of the work.",
            ),
            "b": (
                "about a half: its patches are twice as wide",
                "twice as wide and twice as high: there are 49 patches, not 98.",
            ),
            "c": (
                "about a quarter",
                "nearly all of it is the blocks' Linears, which work once for each token: 50 "
                "in place of 197.",
            ),
        },
    ),
    4: Choice(
        "Somebody puts a softmax behind the head of the trained model, and takes the largest "
        "number as before. How many of 1,000 answers change?",
        "a",
        {
            "a": (
                "none",
                "a larger logit has a larger share. Only a loss that expects logits would suffer.",
            ),
            "b": (
                "those of which the model is not sure",
                "their shares lie close together, but in the same order as the logits.",
            ),
            "c": (
                "nearly all",
                "softmax changes how far the numbers lie apart, and never which is the largest.",
            ),
        },
    ),
    5: Choice(
        "For cls the final norm may come before `[:, 0]` or after it. The head reads the mean "
        "of the patches. May the norm come after the mean too?",
        "b",
        {
            "a": (
                "yes: it works on each token by itself",
                "that is why it does not matter for cls. But a mean is made of many tokens.",
            ),
            "b": (
                "no: other numbers come out",
                "before the mean, each patch is brought to one size; after it, loud patches "
                "have had more say.",
            ),
            "c": (
                "yes: a mean of normed tokens is normed already",
                "its mean is 0, with a fresh norm. But tokens that differ cancel in part, and "
                "its standard deviation is less than 1.",
            ),
        },
    ),
    6: Choice(
        "In a ViT's `forward` stands `for _ in self.blocks: x = self.blocks[0](x)`. What shows it?",
        "c",
        {
            "a": (
                "the number of parameters",
                "all 12 blocks are there, and are counted.",
            ),
            "b": (
                "the shape of the logits",
                "every block gives the shape that it got, the first one as often as you like.",
            ),
            "c": (
                "after one `backward()`, the `grad` of 11 blocks is `None`",
                "nothing that is used depends on them. Only the first block would learn.",
            ),
        },
    ),
    7: Choice(
        "The trained model, with its 56 tensors, goes to another size by `at_size(20)`. How "
        "many of them have another shape then?",
        "a",
        {
            "a": (
                "one",
                "the positions, 26 in place of 17. Patches, blocks and head keep theirs.",
            ),
            "b": (
                "two: positions and patch embedding",
                "its templates are still 4×4 pixels. It makes more patches of them, 25.",
            ),
            "c": (
                "none: a resized tensor keeps its shape",
                "(1, 17, 64) becomes (1, 26, 64): 25 places, and cls.",
            ),
        },
    ),
    8: Choice(
        "Your class makes `self.head` before `self.blocks`. Same seed as the package's class. "
        "What follows?",
        "c",
        {
            "a": (
                "nothing: a seed belongs to a layer's name",
                "random numbers are drawn one after the other, and each layer takes those that "
                "come next.",
            ),
            "b": (
                "its weights do not load into the package's class",
                "loading goes by names and shapes. Both are the same, so it works.",
            ),
            "c": (
                "other logits, though every name, shape and count is the same",
                "the blocks are drawn after the head, and so get other numbers.",
            ),
        },
    ),
    9: Choice(
        "Positions are resized from 4×4 to 5×5, and back to 4×4. What comes out?",
        "b",
        {
            "a": (
                "the first ones, to the last bit",
                "that is so for `patchify` and `unpatchify`, where numbers only move. Here "
                "they are mixed.",
            ),
            "b": (
                "something like the first ones, and the first cls",
                "each place has become a mix of its neighbours, twice. cls stands outside the "
                "grid.",
            ),
            "c": (
                "nothing like the first ones, cls neither",
                "neighbours share out the change: at each place the new position still points "
                "much the same way.",
            ),
        },
    ),
    10: Choice(
        "The final norm's scale γ is doubled, in a model whose norm has no shift and whose "
        "head no bias. What becomes of its answers?",
        "b",
        {
            "a": (
                "they stay, and so do the shares of softmax",
                "the logits double, so their differences do too, and these make the shares.",
            ),
            "b": (
                "the same classes, and it is surer of them",
                "every logit doubles: the order stays, and the largest gets a larger share.",
            ),
            "c": (
                "the same classes, and it is less sure",
                "that would be logits made *smaller*: at 0 every class has the same share.",
            ),
        },
    ),
}
