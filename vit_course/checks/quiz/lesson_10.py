"""Lesson 10: ten questions, their answers, and why each is right or not."""

from ..choosing import Choice

QUESTIONS: dict[int, Choice] = {
    1: Choice(
        "The lesson's file has four blocks: 72 tensors of theirs make 56 of ours. How many tensors "
        "of theirs has a file with twelve blocks?",
        "b",
        {
            "a": (
                "216: three times 72",
                "eight of the 72 belong to no block: cls, positions, and weight and bias of the "
                "patches, the last norm and the head. They do not triple.",
            ),
            "b": (
                "200",
                "16 a block, and eight that belong to none: 12 · 16 + 8.",
            ),
            "c": (
                "152",
                "that is how many of *ours* there are, 12 · 12 + 8. They keep queries, keys and "
                "values apart: four tensors more in each block.",
            ),
        },
    ),
    2: Choice(
        "Somebody stacks query, *value*, key in the fused Linear. What tells them?",
        "c",
        {
            "a": (
                "`load_state_dict` does, when it is strict",
                "it compares names and shapes, and these are all right.",
            ),
            "b": (
                "the number of parameters does",
                "all the same numbers are there, in other rows.",
            ),
            "c": (
                "only what the model computes does",
                "names, shapes and counts are right. But values now serve as keys, and the logits "
                "are far from the publisher's.",
            ),
        },
    ),
    3: Choice(
        "Which of these can you read off the shapes in a file of weights?",
        "a",
        {
            "a": (
                "the width inside the MLP",
                "it is the first axis of `fc1.weight`. A model of another width has other shapes.",
            ),
            "b": (
                "the number of heads",
                "build it with 4 heads and with 8: all tensors have the same shapes.",
            ),
            "c": (
                "whether the head reads cls or the mean of the tokens",
                "build it both ways: all tensors have the same shapes.",
            ),
        },
    ),
    4: Choice(
        "A paper says 97%. A loaded model reads 94% of 500 pictures. May one call that bad luck?",
        "b",
        {
            "a": (
                "yes: three points are little on 500 pictures",
                "three points are 15 pictures. Where 97% are read, samples of 500 rarely miss by "
                "more than eight.",
            ),
            "b": (
                "no: luck is less than one point here",
                "√(0.97 · 0.03 / 500) is 0.8 points, and 3 points are nearly four times that. In "
                "the lesson it was 8 heads in place of 4.",
            ),
            "c": (
                "one cannot tell before it has read 10,000 pictures",
                "with 10,000 one could tell 97% from 96.5%. For three points 500 are enough.",
            ),
        },
    ),
    5: Choice(
        "Two ways to compute the same logits differ by 0.00006, in 32 bits. How do you find out "
        "whether that is rounding or a small slip?",
        "a",
        {
            "a": (
                "compute both in 64 bits",
                "rounding shrinks to 10⁻¹³ or so. A slip, such as another eps in the norms, stays "
                "as large as it was.",
            ),
            "b": (
                "compute both again: rounding is random",
                "it is not: the same program on the same numbers rounds in the same places.",
            ),
            "c": (
                "count the answers that change: rounding changes none",
                "nor does a small slip: with another eps not one of the lesson's 500 changed.",
            ),
        },
    ),
    6: Choice(
        "A model wants mean 0.5 and std 0.5, but all your pictures are prepared with 0.449 and "
        "0.226. Can one change the model in place of the pictures?",
        "b",
        {
            "a": (
                "only by training it further, on such pictures",
                "no training is needed: both preparations are a factor and a shift, and the first "
                "thing that a picture meets is a convolution.",
            ),
            "b": (
                "yes: the weight and the bias of the patch embedding can take it up",
                "x = (0.226 · y + 0.449 − 0.5) / 0.5 for each pixel y. Factor and shift go through "
                "a convolution: scale its weight, and add what the shift makes to its bias.",
            ),
            "c": (
                "there is no need: the first LayerNorm takes factor and shift away",
                "positions are added before it, and a shift of all pixels is not one of all a "
                "token's numbers: 68% were read where 98% are.",
            ),
        },
    ),
    7: Choice(
        "You put a new head with three classes on ViT-B/16 and train a linear probe. How many "
        "numbers does it train?",
        "a",
        {
            "a": (
                "2,307",
                "three weights for each of the 768 numbers of cls, and three biases.",
            ),
            "b": (
                "2,304",
                "those are the weights: 3 · 768. A Linear has a bias for each class as well.",
            ),
            "c": (
                "about 86 million",
                "so many has the whole model. A probe leaves the body as it is.",
            ),
        },
    ),
    8: Choice(
        "The names fit, but the file's head is for 1,000 classes and yours for 3. What does "
        "`load_state_dict(…, strict=False)` do?",
        "c",
        {
            "a": (
                "it leaves your head as it is, without a word",
                "so it does with names that are *missing*. A shape that does not fit is another "
                "matter.",
            ),
            "b": (
                "it takes the first three classes",
                "it never cuts a tensor: a part of a weight is seldom what one wants.",
            ),
            "c": (
                "it raises an error",
                "strict=False forgives missing and left-over names, not a wrong shape. Take the "
                "head's two tensors out first, and say so.",
            ),
        },
    ),
    9: Choice(
        "A strange `.pth` is opened by `torch.load(…, weights_only=False)`. Its tensors look odd, "
        "so nothing is put into a model, and the file is deleted. Was there a danger?",
        "b",
        {
            "a": (
                "no: weights do nothing until a model uses them",
                "weights do not, but the file is a list of instructions, and they ran when it was "
                "opened.",
            ),
            "b": (
                "yes: whatever it was to call has been called",
                "a pickle calls functions in order to build its objects. All is done before you "
                "see the first tensor.",
            ),
            "c": (
                "only if the model had been run with it",
                "a model runs its own code, whatever its weights are. The file's code ran before.",
            ),
        },
    ),
    10: Choice(
        "A file keeps its matrices as (inputs, outputs), a Linear as (outputs, inputs). You forget "
        "to transpose. Which of a block's four matrices load without a word?",
        "c",
        {
            "a": (
                "none: all shapes are turned round",
                "turn (768, 768) round: it is (768, 768).",
            ),
            "b": (
                "all: a matrix holds as many numbers either way",
                "`load_state_dict` compares shapes, not counts: `fc1` would be (768, 3072).",
            ),
            "c": (
                "`proj` alone",
                "it is square. `qkv`, `fc1` and `fc2` have other sides, and their shapes tell.",
            ),
        },
    ),
}
