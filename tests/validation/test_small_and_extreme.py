"""One neuron, one to three inputs, labels from 10⁻¹⁵⁰ to 10¹⁵⁰: a right number or a refusal. Minutes: `make validate`.

The product of everything that is registered with every activation; soak/extremes.py says what makes a number right.
tests/test_numbers.py checks ordinary units at d = 1 against least squares on a quadrature.
"""

from collections import Counter

import pytest
from soak import extremes
from soak.calls import Calls
from soak.tally import Tally

pytestmark = pytest.mark.slow

REGIMES = sorted({case.regime for case in extremes.cases()})
FEWER = (-141, -4, 4, 139)  # where a unit takes seconds: `exact` descends on a network, or a link has to be integrated


@pytest.mark.parametrize("regime", REGIMES)
def test_a_right_number_or_a_refusal(regime, keep):
    tally = Tally("extremes")
    calls = Calls(tally)
    answers: Counter[str] = Counter()
    for case in extremes.cases():
        if case.regime == regime:
            before = calls.accepted
            slow = (case.claim.fidelity, regime) == ("exact", "Trained") or case.problem == "MultiIndex"
            extremes.judge(calls, case, FEWER if slow else extremes.EXPONENTS)
            answers[f"{case.claim.fidelity} {case.problem}"] += calls.accepted - before
    keep(**tally.counts, compared=tally.tried, answers=dict(sorted(answers.items())))
    assert tally.findings == []
    # one neuron is less than the 2d that these formulas ask for
    assert {name for name, number in answers.items() if number == 0} <= {
        "limit HarmonicTarget", "limit MultiIndex", "limit LinearTarget",
    }  # fmt: skip
