"""Claims of other people: what is admitted, who is asked first, and what a broken package costs."""

import logging
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import lazyscope as ls
from lazyscope import plugins
from lazyscope.activations import named
from lazyscope.evidence import registry
from lazyscope.evidence.claim import at_ratios, exponential_quantiles

BIBTEX = """@misc{stranger2020one,
  title = {One},

  year = {2020}
}
@misc{stranger2021two, title = {Two}}"""


def odd(problem, regime, rho):
    return {"risk": np.ones_like(rho)}


CLAIM = ls.Claim(
    fidelity="limit",
    problem=ls.QuadraticTarget,
    regime=ls.NeuralTangent,
    title="odd activations",
    theorem="Proposition 1",
    citations=("stranger2020one",),
    assumptions=("σ is odd",),
    arguments=("rho",),
    compute=at_ratios(odd),
    covers=lambda problem, regime: regime.activation.name in ("erf", "tanh", "square"),
    example=lambda d: (exponential_quantiles(d), ls.NeuralTangent("erf")),
    bibtex=BIBTEX,
)
TARGET = ls.QuadraticTarget([3.0, 1.0])


@pytest.fixture(autouse=True)
def _as_before(monkeypatch):
    """Leave the registry as it was."""
    # private: there is no way to take a registered claim back, and none is wanted
    monkeypatch.setattr(registry, "_REGISTERED", dict(registry._REGISTERED))
    yield
    registry.load_installed.cache_clear()
    named.installed.cache_clear()


def offering(monkeypatch, **things):
    """Pretend that a package offers these things as entry points: an exception is what its import raises."""

    def load(thing):
        if isinstance(thing, Exception):
            raise thing
        return thing

    points = [
        SimpleNamespace(
            name=name, value=name, dist=SimpleNamespace(name="stranger"), load=lambda thing=thing: load(thing)
        )
        for name, thing in things.items()
    ]
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: points)
    registry.load_installed.cache_clear()
    named.installed.cache_clear()


def test_a_registered_claim_is_found_cited_and_listed():
    ls.register(CLAIM)
    result = ls.limit(TARGET, ls.NeuralTangent("erf"), rho=[0.5, 2.0])
    assert result.claim == CLAIM.key
    assert result.risk.values.tolist() == [1.0, 1.0]
    assert ls.cite(result) == BIBTEX[: BIBTEX.index("@misc{stranger2021")].strip()
    assert CLAIM in ls.claims()


def test_a_result_whose_package_is_gone_is_told_by_its_claim():
    lone = ls.limit(TARGET, ls.RandomFeatures(), rho=0.5).assign_attrs(claim=CLAIM.key, citations="stranger2020one")
    with pytest.raises(ls.InvalidParameter, match="odd-activations, which is not known here"):
        ls.cite(lone)


def test_no_number_of_lazyscope_changes():
    before = ls.limit(TARGET, ls.NeuralTangent(), rho=0.5)
    ls.register(CLAIM)  # covers the square activation too
    assert ls.limit(TARGET, ls.NeuralTangent(), rho=0.5).identical(before)
    with pytest.raises(ls.NoTheorem, match="Theorem 2 assumes σ"):
        ls.limit(TARGET, ls.NeuralTangent("relu"), rho=0.5)  # the hypothesis is still named


def test_another_question_about_a_pair_is_asked_by_its_method():
    ls.register(replace(CLAIM, method="odd"))
    assert float(ls.limit(TARGET, ls.NeuralTangent(), rho=0.5, method="odd").risk) == 1.0
    assert float(ls.limit(TARGET, ls.NeuralTangent(), rho=0.5).risk) < 1.0


@pytest.mark.parametrize(
    ("claim", "said"),
    [
        ("a theorem", "must be a Claim"),
        (replace(CLAIM, fidelity="guess"), "must have a fidelity of limit, exact, simulate"),
        (replace(CLAIM, title="neural tangent"), "must have a key of its own"),
        (replace(CLAIM, bibtex=""), "no entry for stranger2020one"),
        (replace(CLAIM, citations=()), "no citation"),
    ],
)
def test_what_is_no_claim_is_refused_in_one_line(claim, said):
    with pytest.raises(ls.InvalidParameter, match=said) as error:
        ls.register(claim)
    assert "\n" not in str(error.value)


def test_a_claim_of_ones_own_may_be_registered_again():
    ls.register(CLAIM)
    ls.register(replace(CLAIM, theorem="Proposition 2"))
    assert ls.limit(TARGET, ls.NeuralTangent("erf"), rho=0.5).theorem == "Proposition 2"


@pytest.mark.parametrize("offer", [CLAIM, (CLAIM,), SimpleNamespace(CLAIMS=(CLAIM,))], ids=["one", "several", "module"])
def test_an_installed_package_is_found(monkeypatch, offer):
    offering(monkeypatch, mine=offer)
    assert ls.limit(TARGET, ls.NeuralTangent("erf"), rho=0.5).claim == CLAIM.key


@pytest.mark.parametrize(
    ("offer", "said"),
    [
        (ModuleNotFoundError("No module named 'numbers_of_mine'"), "No module named 'numbers_of_mine'"),
        (RuntimeError("two\nlines"), "RuntimeError: two lines"),
        (7, "TypeError"),
        ((CLAIM, replace(CLAIM, theorem="another")), "which is taken"),
        (replace(CLAIM, title="neural tangent"), "which is taken"),
    ],
)
def test_a_broken_package_costs_one_line_that_names_it(monkeypatch, caplog, offer, said):
    offering(monkeypatch, broken=offer, mine=replace(CLAIM, title="the next one"))
    with caplog.at_level(logging.WARNING, "lazyscope"):
        known = ls.claims()
    (line,) = caplog.messages
    assert "stranger" in line and "'broken' of lazyscope.claims" in line and said in line
    assert "\n" not in line
    assert any(claim.title == "the next one" for claim in known)


def test_an_activation_of_another_package_has_its_name_everywhere(monkeypatch, caplog):
    bump = named.Definition("e^(−u²)", lambda u: np.exp(-u * u), lambda u: -2.0 * u * np.exp(-u * u), settles=7.0)
    offering(monkeypatch, bump=bump, relu=bump, nonsense=3)
    with caplog.at_level(logging.WARNING, "lazyscope"):
        assert ls.activation_names()[-1] == "bump"
    assert ["one that is taken" in line or "got int" in line.lower() for line in caplog.messages] == [True, True]
    same = ls.Activation(lambda u: np.exp(-u * u))
    assert ls.Activation("bump").lambda_k(2) == pytest.approx(same.lambda_k(2), rel=1e-12)
    assert ls.exact(TARGET, ls.RandomFeatures("bump"), width=3).regime == "RF, σ = bump"
    assert ls.Activation("relu").formula == "max(u, 0)"


def test_other_packages_are_not_asked_for_what_lazyscope_knows(monkeypatch):
    asked = []
    monkeypatch.setattr(plugins, "collect", lambda group, take: asked.append(group))
    registry.load_installed.cache_clear()
    named.installed.cache_clear()
    ls.limit(TARGET, ls.RandomFeatures("relu"), rho=0.5)
    assert asked == []
