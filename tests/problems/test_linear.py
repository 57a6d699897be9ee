"""The linear target: its energies, and what it refuses."""

import pytest

import lazyscope as ls
from lazyscope.problems import LinearTarget


def test_it_says_what_it_is():
    assert str(LinearTarget()) == "linear target on the sphere, F₁ = 1, τ = 0"
    full = LinearTarget(signal=2, noise=0.5, nonlinear=1.5, inputs="gaussian")
    assert str(full) == "linear target of Gaussian inputs, F₁ = 2, τ = 0.5, F⋆ = 1.5"
    assert full.energy == 2.0**2 + 1.5**2  # not the noise: risks are those of the noiseless target
    assert full == LinearTarget(2.0, 0.5, 1.5, "gaussian")


@pytest.mark.parametrize("name", ["signal", "noise", "nonlinear"])
@pytest.mark.parametrize("value", [-1.0, float("nan"), float("inf"), "1", None, 1e200, [1.0]])
def test_standard_deviations_are_checked(name, value):
    with pytest.raises(ls.LazyscopeError, match=f"The {name} parameter of LinearTarget must be a standard deviation"):
        LinearTarget(**{name: value})


def test_inputs_are_checked():
    with pytest.raises(ls.LazyscopeError, match='inputs parameter of LinearTarget must be "sphere" or "gaussian"'):
        LinearTarget(inputs="cube")
