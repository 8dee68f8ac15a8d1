"""Answers to the exercises, right and wrong, as learners would write them; see test_checks.py."""
