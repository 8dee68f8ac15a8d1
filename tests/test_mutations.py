"""Every one-line mutation of the core that changes the logits is found, or known why it cannot."""

import sys

import pytest

from tests import rewriting
from tests.mutations import FORMS, REASONS, Verdict, look, made, package, reasons_of, size_of, text
from vit_doctor import examine

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def verdicts():
    """Of all mutations; under a minute."""
    return list(look(rewriting.mutations()))


def unexplained(verdicts):
    """Mutations that change the logits, are not found, and have not just one reason for it."""
    missed = [v.mutation for v in verdicts if v.form and not v.names]
    return [str(mutation) for mutation in missed if len(reasons_of(mutation)) != 1]


def stale(verdicts, part):
    """Whether no mutation needs this part of a reason any more."""
    return not any(v.form and not v.names and part in text(v.mutation) for v in verdicts)


@pytest.mark.parametrize("form", FORMS)
def test_the_sound_model_comes_out_clean(form):
    with package() as core:
        assert examine(made(core, form), size_of(form)).names == []


def test_there_are_many_in_every_file(verdicts):
    changed = [v for v in verdicts if v.form]
    assert len(changed) > 150
    assert {v.mutation.file for v in changed} == set(rewriting.PLACES)
    assert sum(bool(v.names) for v in changed) > 0.6 * len(changed)


def test_each_that_changes_the_logits_is_found_or_has_one_reason(verdicts):
    assert unexplained(verdicts) == []


def test_each_reason_is_needed(verdicts):
    """A part of a reason that is named here is found by now, or never made: take it out."""
    assert [p for parts in REASONS.values() for p in parts if stale(verdicts, p)] == []


def test_no_reason_speaks_of_what_is_found(verdicts):
    both = [str(v.mutation) for v in verdicts if v.names and reasons_of(v.mutation)]
    assert both == []


def test_the_library_itself_is_not_what_raises(verdicts):
    """A tree that cannot be compiled, or a module that is not there, would pass for an error."""
    for v in verdicts:
        assert not v.error.startswith(("SyntaxError", "ImportError", "ModuleNotFound")), v


def test_what_is_neither_found_nor_explained_is_named():
    mutation = rewriting.mutations()[0]
    assert unexplained([Verdict(mutation, "fused")]) == [str(mutation)]
    assert unexplained([Verdict(mutation, "fused", ("prints",)), Verdict(mutation)]) == []
    assert stale([Verdict(mutation, "fused", ("prints",))], mutation.after)
    assert not stale([Verdict(mutation, "fused")], mutation.after)


def test_a_mutation_leaves_nothing_behind():
    before, source = set(sys.modules), rewriting.SOURCES["encoder"]
    (mutation,) = [m for m in rewriting.mutations() if m.after == "x = mixed"]
    with package(mutation) as core:
        assert core["encoder"].EncoderBlock is not sys.modules["vit_steps.encoder"].EncoderBlock
        assert core["vit"].Encoder is core["encoder"].Encoder
    assert set(sys.modules) == before
    with open(rewriting.path_of("encoder"), encoding="utf-8") as file:
        assert file.read() == source
