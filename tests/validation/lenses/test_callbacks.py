"""The callbacks of the network lens inside real trainings by Lightning and by Keras (its PyTorch and JAX backends).

Neither package is among lazyscope's own dependencies. In an environment beside the usual one:

    pip install lightning keras && pip install --editable '.[torch,jax]' --group test
    python -m pytest -m slow tests/validation/lenses/test_callbacks.py

Where they are not installed these validations are skipped, and say so.
"""

import os
import subprocess
import sys
from importlib.util import find_spec

import numpy as np
import pytest

import lazyscope as ls

pytestmark = pytest.mark.slow

EPOCHS = 3


def rows():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((64, 5)).astype(np.float32)
    return X, (X[:, 0] * X[:, 1]).astype(np.float32)


def test_lightning_looks_after_every_epoch():
    lightning, torch = pytest.importorskip("lightning"), pytest.importorskip("torch")
    X, y = rows()

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = torch.nn.Sequential(torch.nn.Linear(5, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))

        def forward(self, x):
            return self.net(x)

        def training_step(self, batch, index):
            x, y = batch
            return torch.mean((self(x)[:, 0] - y) ** 2)

        def configure_optimizers(self):
            return torch.optim.Adam(self.parameters(), lr=1e-2)

    torch.manual_seed(0)
    module = Module()
    look = ls.lens(module, X, y)
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(*map(torch.as_tensor, (X, y))), batch_size=16)
    trainer = lightning.Trainer(
        max_epochs=EPOCHS,
        callbacks=[look.callback(lightning.Callback)],
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(module, loader)
    check(look)


KERAS = """
import numpy as np, keras, lazyscope as ls
X, y = np.load({file!r})["X"], np.load({file!r})["y"]
keras.utils.set_random_seed(0)
layers = keras.layers
model = keras.Sequential([keras.Input((5,)), layers.Dense(32, activation="relu"), *{more}, layers.Dense(1)])
model.compile(keras.optimizers.Adam(1e-2), loss="mse")
look = ls.lens(model, X, y)
model.fit(X, y, epochs=3, batch_size=16, verbose=0, callbacks=[look.callback(keras.callbacks.Callback)])
last, own = look.looks[-1], model.evaluate(X, y, verbose=0)
print([one.step for one in look.looks], last.change > 0, abs(2 * last.loss / own - 1) < 1e-5)  # half the squared error
"""


@pytest.mark.parametrize("more", ["[]", "[layers.BatchNormalization(), layers.Dropout(0.1)]"], ids=["plain", "norm"])
@pytest.mark.parametrize("backend", ["torch", "jax"])
def test_keras_looks_after_every_epoch(backend, more, tmp_path):
    """In a process of its own: Keras takes its backend when it is imported."""
    for name in ("keras", backend):
        if find_spec(name) is None:
            pytest.skip(f"{name} is not installed")
    X, y = rows()
    np.savez(tmp_path / "rows.npz", X=X, y=y)
    script = KERAS.format(file=str(tmp_path / "rows.npz"), more=more)
    done = subprocess.run(
        [sys.executable, "-c", script], env={**os.environ, "KERAS_BACKEND": backend}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n")[0] == "[0.0, 1.0, 2.0, 3.0] True True"


def check(look):
    """One look a finished epoch, of weights that move, and a loss that falls."""
    assert [one.step for one in look.looks] == [0.0, *np.arange(1.0, EPOCHS + 1)]
    assert look.looks[-1].loss < look.looks[0].loss
    assert 0 < look.looks[1].change < look.looks[-1].change
