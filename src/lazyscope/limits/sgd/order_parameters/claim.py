"""`limit(MultiIndex, Trained, width, times, step_size)`: the risk along one-pass SGD, d → ∞ with N fixed."""

from __future__ import annotations

import numpy as np

from lazyscope.errors import InvalidParameter
from lazyscope.evidence.claim import Claim
from lazyscope.evidence.run import Run
from lazyscope.evidence.work import Row
from lazyscope.limits.sgd.order_parameters.machine import LAST, check_length
from lazyscope.limits.sgd.order_parameters.path import machine_of
from lazyscope.problems import MultiIndex
from lazyscope.regimes import Trained


def along_time(run: Run) -> Row:
    """Return the risk for every width, time and step size; with one width, the overlaps Q and R as well.

    The start is that of the weights which `simulate` draws in the problem's own d: without its overlaps of order
    d^−½ with the teachers, SGD would stay at the first plateau for ever.
    """
    problem, regime = run.problem, run.regime
    assert isinstance(problem, MultiIndex) and isinstance(regime, Trained)  # the types that the claim serves
    times = np.array(run.sizes["times"])
    if not np.all(times <= LAST):
        raise InvalidParameter.of("limit", "times", f"be at most {LAST:g}, in units of d steps", f"{times.max():g}")
    check_length("limit", float(times.max()), max(run.sizes["step_size"]))
    moments, back = np.unique(times, return_inverse=True)
    risks, halves, errors, overlaps = [], [], [], []
    for width in run.sizes["width"]:
        if not float(width).is_integer():  # ∞ is none either
            raise InvalidParameter.of("limit", "width", "be a whole number of neurons, N fixed", f"{width:g}")
        machine = machine_of(problem, regime, int(width))
        start = machine.shape.drawn(problem.d, regime.init, run.seed, run.number)
        solved = [machine.solved(start, moments, step) for step in run.sizes["step_size"]]
        squares = np.stack([squared[back] for _, squared, _ in solved], axis=1)  # time, step size
        risks.append(squares / problem.energy)
        halves.append(0.5 * squares)
        errors.append(np.stack([np.zeros(back.size) if away is None else away[back] for *_, away in solved], axis=1))
        overlaps.append([machine.shape.split(states[back])[:2] for states, *_ in solved])
    row = {"risk": np.stack(risks), "epsilon_g": np.stack(halves)}
    if np.any(np.stack(errors)):
        row["risk_error"] = np.stack(errors) / problem.energy
    if len(overlaps) == 1:
        row["Q"], row["R"] = (np.stack([pair[at] for pair in overlaps[0]], axis=1)[None] for at in (0, 1))
    return row


CLAIMS = (
    Claim(
        fidelity="limit",
        problem=MultiIndex,
        regime=Trained,
        title="one-pass SGD along time",
        theorem="order parameters of one-pass SGD",
        citations=("saad1995online", "goldt2019dynamics"),
        assumptions=(
            "x ~ N(0, I), y = h(⟨u₁, x⟩, …) + ε, fresh samples, one a step",
            "d → ∞, N fixed, t = steps/d; overlaps start at those of weights drawn in d dimensions",
            "f = Σ σ(⟨w_i, x⟩) + c, w and c trained with steps η/d on ½(f − y)²; step_size 0: η → 0, times are ηt",
            "closed forms for neurons alike in both, of erf, erf2, relu or square; else rules, and `risk_error`",
        ),
        arguments=("width", "times", "step_size"),
        compute=along_time,
        example=lambda d: (MultiIndex(d, "committee-erf2", indices=2), Trained("erf2", init=0.5)),
        sizes={"width": 2, "times": 2.0, "step_size": 0.5},
        dims={"Q": ("neuron", "neuron_too"), "R": ("neuron", "index")},
        rate=0.5,
        scale_free=False,
    ),
)
