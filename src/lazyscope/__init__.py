"""lazyscope: what a two-layer network learns in each training regime, and what laziness costs.

    problem × regime × fidelity → labelled risk

>>> import lazyscope as ls
>>> target = ls.QuadraticTarget.exponential(450, seed=100)
>>> for regime in (ls.RandomFeatures(), ls.NeuralTangent(), ls.Trained()):
...     print(regime.label, ls.limit(target, regime, rho=0.5).risk.values.round(3))
RF 0.837
NT 0.372
NN 0.032

Names are loaded on first use, so that `import lazyscope` and the command line start at once.
"""

import lazy_loader

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__all__ = sorted([*__all__, "__version__"])
