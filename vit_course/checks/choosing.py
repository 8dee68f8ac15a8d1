"""Questions with lettered answers: each answer says why it is right, or why it is not."""

from collections.abc import Mapping
from textwrap import fill
from typing import Any

WIDTH = 85  # columns: an output breaks longer lines within a word


class Choice:
    """A question, its answers by letter, and for each of them a reason.

    Args:
        question: what to decide.
        right: the letter of the right answer.
        answers: by letter, the answer and its reason: why it is right, or why it is not.

    Calling it with a letter prints whether that is right, and why; with `...`, the question.

    Raises:
        ValueError: the right letter is not among the answers, or there is only one answer.
    """

    def __init__(self, question: str, right: str, answers: Mapping[str, tuple[str, str]]):
        if right not in answers or len(answers) < 2:
            raise ValueError(
                f"right is {right!r}; give one of several answers: {', '.join(answers)}"
            )
        self.question, self.right, self.answers = question, right, dict(answers)

    def __call__(self, choice: Any = ...) -> None:
        print(self.judge(choice))

    def __str__(self) -> str:
        answers = [
            fill(f"  {letter}  {answer}", WIDTH, subsequent_indent="     ")
            for letter, (answer, _) in self.answers.items()
        ]
        return "\n".join([fill(self.question, WIDTH), *answers])

    def judge(self, choice: Any) -> str:
        """What to say to a choice: one of the letters, or `...` for none yet."""
        letters = [f'"{letter}"' for letter in self.answers]
        wanted = f"{', '.join(letters[:-1])} or {letters[-1]}"
        if choice is ...:
            return f"{self}\ndecide: put {wanted} in place of `...`"
        letter = choice.strip().lower() if isinstance(choice, str) else choice
        if not isinstance(letter, str) or letter not in self.answers:
            return f"this is {choice!r}: give {wanted}"
        verdict = "right" if letter == self.right else f"not {letter}"
        return f"{verdict}: {self.answers[letter][1]}"
