"""Lesson 07: ten questions, their answers, and why each is right or not."""

from ..choosing import Choice

QUESTIONS: dict[int, Choice] = {
    1: Choice(
        "The loss is (w − 3)², and w starts at 0. A learning rate of 0.25 halves the distance to 3 "
        "at each step. What does 0.5 do?",
        "b",
        {
            "a": (
                "it leaves a quarter of the distance at each step",
                "a step leaves the share 1 − 2 · rate of the distance: 1/2 at 0.25, but 0 at 0.5.",
            ),
            "b": (
                "it is there after one step",
                "the gradient is −6, and 0.5 · 6 = 3. A step leaves the share 1 − 2 · rate of the "
                "distance, and that is 0.",
            ),
            "c": (
                "it jumps over 3, to 6, and back again",
                "that needs a step of 6, a learning rate of 1.0: the share that is left is −1.",
            ),
        },
    ),
    2: Choice(
        "With ten classes an untrained model starts at a loss of 2.30. Where does one with a "
        "hundred classes start?",
        "c",
        {
            "a": (
                "at 2.30 too: it knows as little as the other",
                "it knows as little, but of more classes: each gets a hundredth, not a tenth.",
            ),
            "b": (
                "at 23.0: there are ten times as many classes",
                "the loss grows with the logarithm of the number of classes, not with the number.",
            ),
            "c": (
                "at 4.61, twice as high",
                "each class gets a hundredth, and −ln 0.01 = 4.61. A hundredth is a tenth of a "
                "tenth, so the logarithm doubles.",
            ),
        },
    ),
    3: Choice(
        "A model reads nine of ten pictures rightly, and always puts one logit 3 above the others. "
        "You multiply all logits by 10. What becomes of its accuracy and its loss?",
        "a",
        {
            "a": (
                "the accuracy stays, and the loss rises",
                "the largest logit remains the largest. But the model is surer of its one mistake, "
                "and that costs more than nine sure right answers save.",
            ),
            "b": (
                "the accuracy stays, and the loss falls, as most answers are right",
                "the nine save next to nothing, since they cost little as it was. The tenth costs "
                "about ten times as much as before.",
            ),
            "c": (
                "both stay as they are: the softmax divides the factor away",
                "softmax takes away what is *added* to all logits. A factor makes it sharper.",
            ),
        },
    ),
    4: Choice(
        "Somebody multiplies the loss by 100 before `backward()`. How much longer is the first "
        "step of SGD, and of AdamW without decay?",
        "b",
        {
            "a": (
                "100 times longer in both: each gradient is",
                "AdamW divides the mean gradient by the root of the mean square. Both have the "
                "factor 100 in them, and it cancels.",
            ),
            "b": (
                "SGD's is 100 times longer, AdamW's is as long as before",
                "SGD multiplies the gradient by the learning rate. AdamW divides the gradient by "
                "its own size.",
            ),
            "c": (
                "it is as long as before in both: the learning rate is the same",
                "SGD's step is gradient times learning rate, and the gradient is 100 times larger.",
            ),
        },
    ),
    5: Choice(
        "The best of 20 guessers shows 13% on 359 validation pictures of ten classes. What would "
        "the best of 20 show on 3,590 pictures?",
        "a",
        {
            "a": (
                "about 11%",
                "ten times as many pictures make luck √10 times smaller: the three points over 10% "
                "become one.",
            ),
            "b": (
                "13% again: it is still the best of 20",
                "the number of guessers is the same, but each one's accuracy lies closer to 10% "
                "when there are more pictures.",
            ),
            "c": (
                "more than 13%: more pictures are more chances to be lucky",
                "they are as many chances to be unlucky, and over many pictures these cancel.",
            ),
        },
    ),
    6: Choice(
        "Somebody's training step goes: loss, `backward()`, `step()`, and `zero_grad()` last. "
        "What does that change?",
        "c",
        {
            "a": (
                "nothing moves: the gradients are gone when they are needed",
                "that is so where `zero_grad()` stands between `backward()` and `step()`. Here the "
                "step is already done.",
            ),
            "b": (
                "each step adds the gradients of two batches",
                "the last batch's were cleared at the end of its own step.",
            ),
            "c": (
                "nothing: the weights come out the same",
                "what counts is that no old gradient is there when `backward()` adds the new one. "
                "Clearing at the end of one step or in the next serves that alike.",
            ),
        },
    ),
    7: Choice(
        "Which of these three mistakes is found by training on one batch again and again?",
        "b",
        {
            "a": (
                "all training pictures lie upside down, those of val do not",
                "a model learns pictures by heart whichever way they lie: the loss goes to 0.",
            ),
            "b": (
                "the optimizer holds the weights of a model that was made before",
                "nothing moves in the model that is asked, and its loss stays where it was, to the "
                "last digit.",
            ),
            "c": (
                "a third of the test pictures are among the training pictures",
                "that batch is learned like any other: the loss goes to 0. Compare the pictures.",
            ),
        },
    ),
    8: Choice(
        "A training has 200 steps, and the first quarter of them warms up. Which share of the peak "
        "has the learning rate at step 125?",
        "a",
        {
            "a": (
                "0.50",
                "the rise ends at step 50. Step 125 is half-way from there to 200, and half-way "
                "down a half cosine is a half.",
            ),
            "b": (
                "0.38: 75 of 200 steps are left",
                "a straight line from step 0 to the end would be there. The fall begins at step "
                "50, and a cosine is not straight.",
            ),
            "c": (
                "0.31: half a cosine over 200 steps has come to that",
                "that would be a fall from step 0 on. The first 50 steps belong to the rise.",
            ),
        },
    ),
    9: Choice(
        "A decay of 0.05 and a peak of 0.005 take 4% off a weight without gradient, in 340 steps. "
        "Now the peak is ten times lower, and there are ten times as many steps. How much in all?",
        "c",
        {
            "a": (
                "0.4%: each step takes ten times less",
                "it does. But there are ten times as many of them.",
            ),
            "b": (
                "about 34%: there are ten times as many steps",
                "there are. But each takes ten times less, as the learning rate is a factor of it.",
            ),
            "c": (
                "4% again",
                "a step takes learning rate · decay, so what counts is the sum of the learning "
                "rates over all steps, and that is the same.",
            ),
        },
    ),
    10: Choice(
        "You go on with an interrupted training from the saved weights, with a new AdamW. What is "
        "different from a training that was never stopped?",
        "a",
        {
            "a": (
                "the next steps: AdamW's means begin anew",
                "a first step is as long as the learning rate for every weight, however small and "
                "unsteady its gradients had been. So `fit` saves the means too.",
            ),
            "b": (
                "nothing: the weights are all that a training has made",
                "train a few steps both ways and compare: the weights differ. AdamW holds two "
                "means a weight, which training has made as well.",
            ),
            "c": (
                "it stops with an error: AdamW has no means for these weights",
                "it makes means of zeros at its first step, without a word.",
            ),
        },
    ),
}
