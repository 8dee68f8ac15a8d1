"""Lesson 08: ten questions, their answers, and why each is right or not."""

from ..choosing import Choice

QUESTIONS: dict[int, Choice] = {
    1: Choice(
        "Luck alone moves a mean of three by up to 2.7 points. The old model has 85, 86 and 87%, "
        "the new one 86.5, 89.5 and 91%. What may you say, by the lesson's two rules?",
        "b",
        {
            "a": (
                "the new one is better: the means lie 3 points apart",
                "that is the first rule. By the second all dots of one must lie beyond all dots of "
                "the other, and 86.5 lies below 87.",
            ),
            "b": (
                "nothing is shown yet",
                "the means are 3 points apart, more than luck's 2.7. But the dots overlap: 86.5 of "
                "the new one lies below 87 of the old. Take more seeds.",
            ),
            "c": (
                "neither is better: they are equal, as the dots overlap",
                "three seeds that cannot tell do not show that two models are equal. The means "
                "lie 3 points apart, after all.",
            ),
        },
    ),
    2: Choice(
        "On 1,239 pictures an accuracy of 87% is known to about a point. How many pictures make "
        "that half a point?",
        "c",
        {
            "a": (
                "about 1,750",
                "that is √2 times as many. The error falls with the root of the number, so half "
                "of it takes 2² times as many.",
            ),
            "b": (
                "about 2,500: twice as many",
                "twice as many make the error √2 times smaller: 0.7 of a point.",
            ),
            "c": (
                "about 5,000",
                "the number stands under a root: half the error takes four times as many pictures.",
            ),
        },
    ),
    3: Choice(
        "To take attention out, somebody puts `nn.Identity()` in the place of `block.attn`. What "
        "does the block do now?",
        "a",
        {
            "a": (
                "it adds the normed tokens to the tokens",
                "the block computes x + attn(norm1(x)), and Identity gives back norm1(x). To take "
                "a branch out, it must give zeros.",
            ),
            "b": (
                "what it did, but for attention: Identity changes nothing",
                "Identity changes nothing of what it *gets*, and that is norm1(x), which the block "
                "then adds to x.",
            ),
            "c": (
                "it gives back the tokens that came in, unchanged",
                "for that the MLP would have to go as well; and the branch would have to give "
                "zeros.",
            ),
        },
    ),
    4: Choice(
        "Without attention, and with a head that reads cls, a ViT reads 10% of the digits. How do "
        "its answers look, digit by digit?",
        "b",
        {
            "a": (
                "all ten classes in turn, as if drawn by lot",
                "a lot would have to be drawn somewhere. In eval nothing is random, and cls is the "
                "same for every picture.",
            ),
            "b": (
                "the same class for every digit",
                "no pixel reaches cls, so its logits are the same for all pictures. About one "
                "digit in ten is of the class that they name.",
            ),
            "c": (
                "mostly wrong, but right where a digit is very clear",
                "the clearest digit does not reach cls either: its logits are the blurred one's.",
            ),
        },
    ),
    5: Choice(
        "In a block of width 48, which of these matrices starts with the *smallest* weights by "
        "Xavier's rule?",
        "c",
        {
            "a": (
                "`proj`, from 48 to 48: it is the smallest matrix",
                "inputs and outputs stand below the line: a small matrix has large weights, "
                "√(2/96) = 0.14.",
            ),
            "b": (
                "`qkv`, from 48 to 144: it is three in one",
                "√(2/192) = 0.10. There is one with more inputs and outputs than 192.",
            ),
            "c": (
                "`fc1`, from 48 to 192",
                "√(2/240) = 0.09: the most inputs and outputs, and so the smallest weights.",
            ),
        },
    ),
    6: Choice(
        "Nearest neighbour loses nothing when the 64 pixels are shuffled, in the same way in every "
        "picture. Now each picture gets a shuffle of its own. What is left of 94%?",
        "a",
        {
            "a": (
                "nothing: one in ten, a guess",
                "a distance compares pixel 5 with pixel 5. These now come from two places that "
                "have nothing to do with each other, in each pair of pictures anew.",
            ),
            "b": (
                "all of it: a distance adds up in any order",
                "in any order that both pictures share. Here each has another.",
            ),
            "c": (
                "about 85%, as with the ink of each patch alone",
                "that ink stood in its place, and the place was what mattered.",
            ),
        },
    ),
    7: Choice(
        "At lesson 02's start a patch is 28 times as loud as its position. Somebody multiplies the "
        "positions by 28 *and* divides the patches by 28. What does a token hold?",
        "c",
        {
            "a": (
                "both alike: that is what the factor 28 was for",
                "one of the two changes does that. The other is then one too many.",
            ),
            "b": (
                "28 times as much patch as position, as before",
                "that is so when both are multiplied by 28. Here they go apart.",
            ),
            "c": (
                "28 times as much position as patch",
                "each of the two changes moves the ratio by 28: from 28 over 1 to even, and "
                "then to 1 over 28. Now the place drowns the patch.",
            ),
        },
    ),
    8: Choice(
        "The ViT has 58,234 weights and the CNN 58,314. Which of them multiplies more to read one "
        "digit?",
        "b",
        {
            "a": (
                "they do about the same, having as many weights",
                "count how often a weight is used: a Linear of the ViT 17 times, a weight of the "
                "CNN's first two convolutions 64 times.",
            ),
            "b": (
                "the CNN",
                "its first two convolutions use each weight at all 64 places, the ViT's Linears "
                "use theirs for 17 tokens. So equal weights are not equal work.",
            ),
            "c": (
                "the ViT: attention compares all pairs of tokens",
                "it does, but 17 × 17 pairs are few: that is a small part of the ViT's own work.",
            ),
        },
    ),
    9: Choice(
        "In the table of the leak the honest model, too, has two different numbers: one on the 199 "
        "digits, and one, a few points away, on the rest. Why?",
        "a",
        {
            "a": (
                "199 digits are a small sample",
                "the standard error of 86% on 199 pictures is 2.5 points. So a few points between "
                "the columns are luck, and only the honest row can tell you that.",
            ),
            "b": (
                "it has learned from some of the 199",
                "compare the pictures: none of those that it learned from is among them.",
            ),
            "c": (
                "it has learned from some of the rest",
                "compare the pictures: it has met none of the rest either. A leak shows as all but "
                "100% on what leaked.",
            ),
        },
    ),
    10: Choice(
        "Two variants, each with some seeds, lie as far apart as can be. With three against three "
        "chance does that in one way of ten. How many seeds each bring it below one in twenty?",
        "a",
        {
            "a": (
                "four",
                "eight numbers can be divided into fours in 70 ways, and 2 of these lie so far "
                "apart: 3%.",
            ),
            "b": (
                "six",
                "six are more than enough: 2 of 924 ways, or 0.2%.",
            ),
            "c": (
                "none: chance remains one in ten, however many there are",
                "the more numbers, the more ways to divide them, and still only 2 of them are "
                "this extreme.",
            ),
        },
    ),
}
