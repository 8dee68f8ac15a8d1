"""The letters of the quiz's right answers, and in core.py those that a measurement decides."""

KEY = [
    "abccab", "bcbacb", "bacabc", "baabcc", "bbacca", "abcacb", "acabcb",  # 00 to 06
    "abbcaa", "babcca", "cbbaba", "acbcab", "cbbaba", "ccbabc", "bcabca",
]  # fmt: skip
