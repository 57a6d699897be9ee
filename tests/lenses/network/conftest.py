"""What tests of the network lens share."""

import jax
import pytest


@pytest.fixture
def doubles():
    """Derivatives are compared to ten digits; JAX has float32 unless it is told otherwise."""
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)
