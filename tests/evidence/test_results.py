"""A labelled result is what xarray's public constructor makes of the same arrays."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

import lazyscope as ls
from lazyscope.evidence import results
from lazyscope.evidence.results import LONG_NAMES, labelled

POINTS = {
    "one point": lambda: ls.limit(ls.QuadraticTarget([2.0, 1.0]), ls.NeuralTangent(), rho=0.5),
    "a grid": lambda: ls.limit(
        ls.LinearTarget(1.0, 0.5), ls.RandomFeatures("relu"), psi1=[1.0, 2.0], psi2=3.0, ridge=[0.1, 1.0]
    ),
    "draws": lambda: ls.exact(ls.QuadraticTarget([2.0, 1.0, 0.5]), ls.NeuralTangent(), width=[1, 2], draws=3),
    "a value twice": lambda: ls.limit(ls.QuadraticTarget([2.0, 1.0]), ls.NeuralTangent(), rho=[0.5, 1.0, 0.5]),
}


@pytest.mark.parametrize("name", POINTS)
def test_labels_are_those_of_the_public_constructor(name):
    result = POINTS[name]()
    public = xr.Dataset(
        {key: (value.dims, value.values, value.attrs) for key, value in result.data_vars.items()},
        {key: (value.dims, value.values, value.attrs) for key, value in result.coords.items()},
        attrs=result.attrs,
    )
    xr.testing.assert_identical(result, public)
    assert set(result.xindexes) == set(public.xindexes)
    for key in result.xindexes:  # selection, arithmetic and alignment go by the index
        assert result.xindexes[key].equals(public.xindexes[key])


def test_labelled_arrays_can_be_selected_aligned_and_written_over():
    places = np.array([0.5, 1.0, 2.0])
    made = labelled({"rho": (("rho",), places)}, {"risk": (("rho",), np.array([3.0, 2.0, 1.0]))}, LONG_NAMES)
    assert float(made.risk.sel(rho=1.0)) == 2.0
    np.testing.assert_array_equal((made.risk - made.risk.isel(rho=[1, 2])).values, [0.0, 0.0])
    made["risk"] = made.risk * 2.0
    assert made.risk.values.tolist() == [6.0, 4.0, 2.0]
    assert made.rho.attrs["long_name"] == LONG_NAMES["rho"]


class Dropped(xr.Dataset):
    """As an xarray without the inner constructor would be."""

    __slots__ = ()
    _construct_direct = None


class OtherArguments(xr.Dataset):
    """As one that takes other arguments."""

    __slots__ = ()

    @classmethod
    def _construct_direct(cls, variables, *, names):
        return xr.Dataset(variables)


class OtherResult(xr.Dataset):
    """As one that takes the same arguments and means something else."""

    __slots__ = ()

    @classmethod
    def _construct_direct(cls, variables, coord_names, dims=None, attrs=None, indexes=None):
        return xr.Dataset({name: variables[name] for name in coord_names})


@pytest.mark.parametrize("changed", [Dropped, OtherArguments, OtherResult])
def test_another_xarray_is_noticed_and_its_public_constructor_serves(changed, monkeypatch):
    assert results._inner_constructor(xr.Dataset) is not None
    assert results._inner_constructor(changed) is None
    usual = {name: make() for name, make in POINTS.items()}
    monkeypatch.setattr(results, "_inner_constructor", lambda kind: None)
    for name, make in POINTS.items():
        xr.testing.assert_identical(make(), usual[name])
        assert set(make().xindexes) == set(usual[name].xindexes)


def test_axes_that_results_share_cannot_be_written_to():
    first, second = (ls.limit(ls.QuadraticTarget([2.0, 1.0]), ls.Trained(), rho=[0.5, 1.0]) for _ in range(2))
    with pytest.raises(ValueError, match="read-only"):
        first.rho.values[0] = 3.0
    first["rho"] = [7.0, 8.0]
    assert second.rho.values.tolist() == [0.5, 1.0]
