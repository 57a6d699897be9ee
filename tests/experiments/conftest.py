"""Every experiment at a size of seconds, computed once for all tests of a process."""

from dataclasses import replace
from functools import cache

import pytest

from lazyscope.experiments import load
from lazyscope.experiments.beyond.coupling import CouplingPreset
from lazyscope.experiments.beyond.expressivity import ExpressivityPreset
from lazyscope.experiments.beyond.generalisation import GeneralisationPreset
from lazyscope.experiments.beyond.higher_order import HigherOrderPreset
from lazyscope.experiments.beyond.landscape import LandscapePreset
from lazyscope.experiments.beyond.sample_complexity import SampleComplexityPreset
from lazyscope.experiments.dynamics.flow import FlowPreset
from lazyscope.experiments.dynamics.giant_step import GiantStepPreset
from lazyscope.experiments.dynamics.plateau import PlateauPreset
from lazyscope.experiments.dynamics.saddle import SaddlePreset
from lazyscope.experiments.dynamics.staircase import StaircasePreset
from lazyscope.experiments.frame.experiment import Findings, compute, plan_of
from lazyscope.experiments.images.random_labels import LabelsPreset
from lazyscope.experiments.images.trained_descent import TrainedDescentPreset
from lazyscope.experiments.lazy.covariance import CovariancePreset
from lazyscope.experiments.lazy.design import Dots, PanelsPreset
from lazyscope.experiments.lazy.directions import DirectionsPreset
from lazyscope.experiments.lazy.gap import GapPreset
from lazyscope.experiments.lazy.inclusion import InclusionPreset
from lazyscope.experiments.lazy.separation import SeparationPreset
from lazyscope.experiments.lazy.spurious_minima import SpuriousPreset
from lazyscope.experiments.margin.margin_equivalence import MarginEquivalencePreset
from lazyscope.experiments.margin.max_margin import MaxMarginPreset
from lazyscope.experiments.margin.separability import SeparabilityPreset
from lazyscope.experiments.ridge.digits import DigitsPreset
from lazyscope.experiments.ridge.double_descent import DoubleDescentPreset
from lazyscope.experiments.ridge.equivalence import EquivalencePreset
from lazyscope.experiments.ridge.kernel_spectrum import SpectrumPreset
from lazyscope.experiments.ridge.mnist import MnistPreset
from lazyscope.experiments.ridge.ridge_snr import RidgeSnrPreset
from lazyscope.experiments.ridge.wide_ridge import WideRidgePreset
from lazyscope.experiments.sizes.bridge import BridgePreset
from lazyscope.experiments.sizes.cost_of_laziness import CostPreset
from lazyscope.experiments.sizes.degrees import DegreesPreset
from lazyscope.experiments.sizes.scaling_laws import ScalingPreset
from lazyscope.experiments.wide.interpolation import InterpolationPreset
from lazyscope.experiments.wide.lazy_to_rich import LazyToRichPreset
from lazyscope.experiments.wide.linearisation import LinearisationPreset
from lazyscope.experiments.wide.mean_field import MeanFieldPreset
from lazyscope.limits.spectral.power_laws import PowerLaw
from lazyscope.protocols import SGD
from lazyscope.sweep.store import Store

_SGD = SGD(steps=150, batch=80, step_sizes=(0.01, 0.02), test=1000)
PANELS = PanelsPreset(
    "seconds",
    d=20,
    fitted=Dots((2, 20), 6, samples=4000),
    tangent=Dots((2, 20), 6, protocol=_SGD),
    trained=Dots((2, 5), 6, protocol=replace(_SGD, steps=200)),
    ratios=(0.1, 0.25, 0.5, 1.0, 2.0),
    draws=3,
    widest=0.4,
)
_TESTED = replace(_SGD, step_sizes=(0.05,), test=20_000)  # where the risk has no closed form
# a prediction of NT knows nothing of the samples that its dot is tested on: with few of them all draws look alike
_TESTED_WELL = replace(_TESTED, test=200_000)
_TESTED_LESS = replace(_SGD, batch=40)
TINY = {
    "giant-step": GiantStepPreset("tiny", 24, 60, ratios=(2.0, 16.0, 64.0), steps=(0.0, 2.0), draws=4),
    "cost-of-laziness": CostPreset(
        "tiny",
        {2: {"kernel": (8, 12, 16), "SGD": (16, 24, 32), "giant step": (12, 24)}, 3: {"NT": (5, 7)}},
        2,
        most=2000,
        most_sgd=20_000,
        width=100,
    ),
    **dict.fromkeys(("fig1", "fig2", "fig-nondiagonal"), PANELS),
    "fig3": replace(PANELS, tangent=Dots((2, 20), 6, protocol=_TESTED_WELL), trained=Dots((2, 5), 6, protocol=_TESTED)),
    "fig-activations": replace(
        PANELS, tangent=Dots((2, 20), 6, protocol=_TESTED_LESS), trained=Dots((2, 5), 6, protocol=_TESTED_LESS)
    ),
    "separation": SeparationPreset(
        "tiny",
        12,
        3,
        ratios=(0.5, 1.0),
        dimensions=(16, 32, 64),
        trained=12,
        protocol=SGD(steps=4000, batch=100, step_sizes=(0.01,), test=2000, rule="adam"),
    ),
    "double-descent": DoubleDescentPreset("tiny", d=24, ratios=(0.2, 0.6, 1.0, 4.0), draws=12),
    "ridge-snr": RidgeSnrPreset("tiny", d=24, ratios=(1.0, 4.0), draws=12),
    "wide-ridge": WideRidgePreset("tiny", d=24, ratios=(0.2, 1.0, 4.0), draws=12),
    "equivalence": EquivalencePreset("tiny", (20, 32), (12, 12), ratios=(0.3, 0.5, 4.0)),
    "mnist": MnistPreset(
        "tiny",
        draws=2,
        pools=2,
        pool=300,
        samples=(60, 120),
        ridges=(1e-2, 1.0),
        features=(20, 120, 400),
        tangent=(4, 100),
        source="digits",
    ),
    "digits": DigitsPreset("tiny", draws=3, samples=120, features=(20, 60, 115, 120, 300), network=(1, 2, 3, 5, 16)),
    "degrees": DegreesPreset("tiny", (12, 60), 100, 12, (75,), dimensions=(30, 1000), points=17),
    "scaling-laws": ScalingPreset(
        "tiny",
        12,
        laws=(PowerLaw(1.5, 0.75), PowerLaw(1.5, 0.3)),
        points=9,
        costs=(1e7, 1e8, 1e9),
        samples=(40,),
        widths=(20, 80),
        terms=200,
    ),
    "bridge": BridgePreset("tiny", 20, 60, psi1=(3.0, 10.0), dimensions=(1000, 10_000, 100_000)),
    "directions": DirectionsPreset("tiny", 40, 20, 40),
    "gap": GapPreset("tiny", 30, 10, 6),
    "covariance": CovariancePreset("tiny", 30, 4, (0.2, 0.5, 1.0)),
    "saddle": SaddlePreset("tiny", (0.3, 0.6, 1.0), 1, 6, 1500),
    "kernel-spectrum": SpectrumPreset("tiny", (24, 48, 96), 3),
    "coupling": CouplingPreset("tiny", (50, 500), draws=2, samples=8, signs=4),
    "higher-order": HigherOrderPreset("tiny", (50, 500), orders=(2, 3), draws=2, samples=8, repeats=8),
    "landscape": LandscapePreset("tiny", (40, 400), 40, samples=30, signs=2, looks=3, d=4),
    "generalisation": GeneralisationPreset("tiny", (4, 10, 25), 4, 5, (20, 160)),
    "expressivity": ExpressivityPreset("tiny", (100, 1600), (2, 3), draws=4, samples=30, d=4),
    "sample-complexity": SampleComplexityPreset(
        "tiny",
        (5, 8),
        (3, 4),
        2,
        learners=("NTK", "quadratic model", "randomised network"),
        width=32,
        randomized_width=32,
        most=70,
        noisy=(5, 8),
        cubic=(3, 4),
    ),
    "max-margin": MaxMarginPreset("tiny", (1.5, 3.0), 16, d=(16, 64)),
    "margin-equivalence": MarginEquivalencePreset("tiny", (12, 64), 16, psi1=(2.0, 3.0), activations=("relu", "tanh")),
    "separability": SeparabilityPreset("tiny", (12, 24), 30, relative=(0.5, 0.8, 1.0, 1.3, 1.8)),
    "flow": FlowPreset("tiny", 20, 3, ratios=(0.5,), until=(2.0, 2.0), small=(0.01, 0.01), larger=(0.02, 0.02)),
    "staircase": StaircasePreset("tiny", 10, 3, (1.0, 0.5, 0.25), 2, init=0.01, until=20.0, step_size=0.01),
    "plateau": PlateauPreset("tiny", (60,), 6, step_size=1.0, until=90.0, first=(0.05, 0.04)),
    "lazy-to-rich": LazyToRichPreset("tiny", 8, 2, alpha=(0.01, 3.0, 300.0, 1000.0)),
    "inclusion": InclusionPreset("tiny", 5, 3, 2),
    "spurious-minima": SpuriousPreset("tiny", (5, 6), 4, 1),
    "random-labels": LabelsPreset("tiny", "digits", 100, 200, 20, 3, 0.02),
    "trained-descent": TrainedDescentPreset("tiny", "digits", 80, 0.2, {1: (2, 5, 8, 12, 30, 100)}, 3, 400),
    "linearisation": LinearisationPreset("tiny", 12, (8, 32), (64, 256, 1024), 6),
    "mean-field": MeanFieldPreset("tiny", (2, 8, 32), 2, steps=300, samples=200, atoms=60),
    "interpolation": InterpolationPreset("tiny", (12, 24), 4, 4),
}


@pytest.fixture(scope="session")
def sizes():
    """The tiny preset of every experiment, by name."""
    return TINY


@pytest.fixture(scope="session")
def tiny(tmp_path_factory):
    """What an experiment finds at its tiny preset, given its name; panels go through a store, `tiny.store`."""

    def store(name):
        return tmp_path_factory.getbasetemp() / f"{name}-tiny.sqlite"

    @cache
    def rows(name):
        experiment, preset = load(name), TINY[name]
        if not experiment.borrows:
            return [work.compute() for work in experiment.work(preset)]
        found(name)  # is in its store then
        _, tasks = plan_of("tiny", experiment.work(preset))
        with Store.reading(store(name)) as opened:
            kept = opened.rows(task.key for task in tasks)
        return [kept[task.key] for task in tasks]

    @cache
    def found(name):
        experiment, preset = load(name), TINY[name]
        if experiment.borrows:
            return compute("tiny", experiment, preset, store(name), workers=1)
        return Findings(experiment.data(preset, rows(name)))

    found.store, found.rows = store, rows
    return found
