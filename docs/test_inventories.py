"""Links to other libraries: every name of the inventories exists, and is of the kind that is told."""

import importlib
import inspect
import typing

import pytest
from making import inventories

ENTRIES = [entry for library in inventories.LIBRARIES.values() for entry in library.entries()]


def found(name):
    """Return the module of this name, or what the module before the last dot has."""
    owner, _, last = name.rpartition(".")
    try:
        return getattr(importlib.import_module(owner), last)
    except AttributeError:
        return importlib.import_module(name)


@pytest.mark.parametrize(("name", "kind", "place"), ENTRIES)
def test_a_name_that_is_linked_exists_and_has_its_place(name, kind, place):
    thing = found(name)
    is_type = inspect.isclass(thing) or typing.get_origin(thing) is not None
    is_kind = {"class": is_type, "function": callable(thing) and not is_type, "module": inspect.ismodule(thing)}
    assert is_kind[kind]
    assert " " not in place and "{" not in place and place.partition("#")[0].endswith(".html")


def test_every_library_has_an_address_below_which_names_are_found():
    for library in inventories.LIBRARIES.values():
        assert library.address.startswith("https://") and library.address.endswith("/")
    assert len({name for name, _, _ in ENTRIES}) == len(ENTRIES)
