"""Generalisation: what Lemma 5 and Theorem 6 of Bai & Lee (2019) say of a data set, with every size measured.

Lemma 5 bounds the Rademacher complexity of the losses by 2B_w² E max_r ‖A_r‖_op + 1/√n, with the A_r of
`training.taylor.complexity`; matrix concentration (Lemma 8) bounds this once more, and leads to Theorem 6's main
term B_x² B_w² M_{x,op}/√n. The operator norm sees the directions of the inputs where the Frobenius norm, as of a
kernel, sees their length alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import ClassVar

import numpy as np

from lazyscope.activations import Activation, as_activation
from lazyscope.activations.derivatives import require_smooth
from lazyscope.checks import FloatArray, real_array, real_number, whole_number
from lazyscope.errors import InvalidParameter
from lazyscope.limits import declared
from lazyscope.training.taylor.complexity import operator_size, second_moment, suprema
from lazyscope.training.taylor.model import TaylorModel
from lazyscope.training.taylor.risk import on_sphere
from lazyscope.weights import generator


@dataclass(frozen=True)
class Generalisation:
    """Bounds on the generalisation of quadratic models on one data set; means over signs with standard errors.

    `complexity` is the Rademacher complexity of f^Q itself, exactly for each draw of signs; `lemma5` the bound with
    operator norms, `frobenius` the same with Frobenius norms; `concentration` the bound on `lemma5` that Lemma 8 gives,
    no signs drawn; `theorem6` the main term of Theorem 6 and 1/√n, constants and logarithms left out.
    """

    claim: ClassVar[str] = "report generalisation"
    theorem: ClassVar[str] = "Lemma 5, Theorem 6"
    citations: ClassVar[str] = "bai2020beyond"

    n: int
    d: int
    m: int
    Bx: float
    Bw: float
    M_op: float
    complexity: float
    complexity_stderr: float
    lemma5: float
    lemma5_stderr: float
    frobenius: float
    concentration: float
    theorem6: float

    def __str__(self) -> str:
        return (
            f"M_op = {self.M_op:.3f} (1/√d = {1 / sqrt(self.d):.3f}), complexity {self.complexity:.3g}, "
            f"Lemma 5 {self.lemma5:.3g}, with Frobenius norms {self.frobenius:.3g}, Theorem 6 {self.theorem6:.3g}"
        )


def generalisation(
    X: FloatArray,
    *,
    width: int = 200,
    Bw: float = 1.0,
    activation: Activation | str = "relu3",
    signs: int = 20,
    seed: int = 0,
) -> Generalisation:
    """Measure a data set, rows of one length B_x: nothing of its labels enters.

    Parameters
    ----------
    X
        Inputs, (n, d), all of the same norm.
    width, activation, seed
        m, even, σ with two derivatives, and the seed of w₀ ~ N(0, I/B_x²) and of the signs.
    Bw
        B_w, the bound on ‖W‖_{2,4}; the bounds grow like B_w².
    signs
        Draws of the n signs, at least 2; each takes m/2 eigendecompositions, n m d² flops before them.

    Examples
    --------
    >>> X = np.random.default_rng(0).choice([-1.0, 1.0], (100, 10))
    >>> found = generalisation(X, width=40)
    >>> bool(2 * found.complexity < found.lemma5 < found.frobenius)
    True
    """
    must = "be an (n, d) array of inputs, all of the same norm"
    X = real_array(X, "generalisation", "X", must)
    if X.ndim != 2 or X.size == 0 or not np.any(X[0]):
        raise InvalidParameter.of("generalisation", "X", must, f"shape {X.shape}" if X.ndim != 2 else "zeros")
    Bx = float(np.linalg.norm(X[0]))
    on_sphere(X, Bx, "generalisation")
    if real_number(Bw, "generalisation", "Bw") <= 0:
        raise InvalidParameter.of("generalisation", "Bw", "be positive", Bw)
    signs = whole_number(signs, "generalisation", "signs", least=2)
    sigma = as_activation(activation)
    require_smooth(sigma, 2)
    rng = generator(seed, 0, whole_number(width, "generalisation", "width"))
    model = TaylorModel.symmetric(width, X.shape[1], sigma, rng, Bx=Bx)
    draws = np.where(rng.random((signs, len(X))) < 0.5, -1.0, 1.0)
    sizes = np.array([suprema(model, X, s) for s in draws])  # (signs, [complexity, operator, Frobenius])
    mean, stderr = Bw**2 * sizes.mean(axis=0), Bw**2 * sizes.std(axis=0, ddof=1) / sqrt(signs)
    n, d, M_op, rest = len(X), X.shape[1], operator_size(X, Bx), 1.0 / sqrt(len(X))
    return Generalisation(
        n,
        d,
        model.m,
        Bx,
        float(Bw),
        M_op,
        complexity=float(mean[0]),
        complexity_stderr=float(stderr[0]),
        lemma5=2.0 * float(mean[1]) + rest,
        lemma5_stderr=2.0 * float(stderr[1]),
        frobenius=2.0 * float(mean[2]) + rest,
        concentration=2.0 * Bw**2 * declared.matrix_concentration(model.m, d, second_moment(model, X)) + rest,
        theorem6=declared.generalisation(Bx, Bw, M_op, n),
    )
