"""What every regime keeps: a label and words of its own, fields that stay, options that make it, refusals in a line."""

import dataclasses
import pickle

import numpy as np
import pytest

import lazyscope as ls
from lazyscope import regimes
from lazyscope.regimes import FixedWeights, GaussianFeatures, Network, Regime

KINDS = [
    kind
    for kind in (getattr(regimes, name) for name in regimes.__all__)
    if isinstance(kind, type) and issubclass(kind, Regime) and kind not in (Regime, Network)
]
NETWORKS = [kind for kind in KINDS if issubclass(kind, Network)]


def made(kind):
    return kind([2.0, 1.0], [0.5, 0.25]) if kind is GaussianFeatures else kind()


def test_labels_and_words_tell_regimes_apart():
    assert len({kind.label for kind in KINDS}) == len(KINDS)
    words = [word for kind in KINDS for word in kind.words]
    assert len(words) == len(set(words))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_a_regime_says_what_it_is_and_stays_it(kind):
    regime = made(kind)
    assert str(regime).startswith(regime.label) or not isinstance(regime, Network)
    assert str(pickle.loads(pickle.dumps(regime))) == str(regime), "a worker gets the regime that was asked for"
    for field in dataclasses.fields(regime):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(regime, field.name, None)


@pytest.mark.parametrize("kind", NETWORKS, ids=lambda kind: kind.__name__)
def test_options_make_the_regime_and_what_is_left_out_is_its_default(kind):
    assert str(kind.from_options(**{option.name: None for option in kind.options})) == str(kind())
    assert kind.from_options(activation="softplus").activation.name == "softplus"
    for fixed in kind.words.values():  # what a word fixes are keywords of the class
        assert isinstance(kind.from_options(**fixed), kind)


@pytest.mark.parametrize("kind", NETWORKS, ids=lambda kind: kind.__name__)
def test_an_unknown_activation_is_refused_in_a_line(kind):
    with pytest.raises(ls.InvalidParameter, match="Did you mean 'relu'") as caught:
        kind(activation="rleu")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", [ls.RandomFeatures, ls.NeuralTangent, ls.JointTangent], ids=lambda kind: kind.__name__)
@pytest.mark.parametrize(
    ("weights", "said"),
    [
        ("optimum", "optimal"),
        (np.zeros(3), "not zero"),
        ([1.0, -1.0], "variance of -1"),
        ([[1.0, 2.0], [0.0, 1.0]], "symmetric"),
        ([1.0, np.nan], "finite"),
    ],
)
def test_weights_that_are_no_covariance_are_refused(kind, weights, said):
    with pytest.raises(ls.InvalidParameter, match=said):
        kind(weights=weights)


def test_weights_of_ones_own_have_a_column_for_each_neuron():
    assert repr(FixedWeights(np.ones((3, 2)))) == "FixedWeights(d=3, N=2)"
    for wrong in (np.ones(3), np.zeros((3, 0)), np.array([[1.0, 0.0], [1.0, 0.0]])):
        with pytest.raises(ls.InvalidParameter, match="a column for each neuron"):
            FixedWeights(wrong)
