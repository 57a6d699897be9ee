"""Statements that are measured: each has its number, a source that is known, and a place that exists."""

import re

import pytest

import lazyscope as ls
from lazyscope.evidence import registry
from lazyscope.experiments import load_all

BEYOND = (
    {f"Lemma {k}" for k in (1, 5, 8, 9, 10, 11, 12, 13, 14)} | {f"Theorem {k}" for k in (2, 4, 6, 7)} | {"Corollary 3"}
)


def test_every_implemented_statement_of_beyond_linearization_is_listed():
    numbers = {one.number for one in ls.statements() if one.citations == ("bai2020beyond",)}
    assert numbers == BEYOND | {"§5.2", "§6.1"}


def test_every_theorem_of_limitations_of_lazy_training_is_listed():
    theirs = " ".join(claim.theorem for claim in ls.claims() if "ghorbani2019limitations" in claim.citations)
    theirs += " ".join(one.number for one in ls.statements() if "ghorbani2019limitations" in one.citations)
    assert {f"Theorem {k}" for k in range(1, 7)} <= set(re.findall(r"Theorem \d", theirs))
    assert "Corollary 1" in theirs and "Proposition 1" in theirs


@pytest.mark.parametrize("one", ls.statements(), ids=lambda one: one.key)
def test_a_statement_has_a_place_and_a_source(one):
    assert one.function or one.figure
    assert not one.function or callable(getattr(ls, one.function))
    assert not one.figure or one.figure in load_all()
    assert one.citations and all(registry.has_entry(key) for key in one.citations)
    assert [other.key for other in ls.statements()].count(one.key) == 1
