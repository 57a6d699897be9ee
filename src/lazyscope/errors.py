"""What lazyscope raises: one shape, as in scikit-learn — what must hold, what arrived, what to do.

Every error is a `LazyscopeError` with a one-line message; the command line prints that line and exits with 2.
"""

from __future__ import annotations

import re


class LazyscopeError(ValueError):
    """Base of everything lazyscope raises on purpose.

    >>> issubclass(NoTheorem, LazyscopeError)
    True
    """


class InvalidParameter(LazyscopeError):
    """A parameter that no method could use: wrong type, shape, sign or size."""

    @classmethod
    def of(cls, owner: str, parameter: str, must: str, got: object, advice: str = "") -> InvalidParameter:
        """Compose the one shape of message.

        >>> print(InvalidParameter.of("limit", "rho", "be positive", -0.3, "Pass N/d."))
        The rho parameter of limit must be positive. Got -0.3 instead. Pass N/d.
        """
        text = f"The {parameter} parameter of {owner} must {must}. Got {got} instead."
        return cls(" ".join(f"{text} {advice}".split()))


class NoTheorem(LazyscopeError):
    """Outside the hypotheses of what is implemented: names the hypothesis and what works instead."""

    @property
    def advised(self) -> tuple[tuple[str, str | None], ...]:
        """The verbs that the message says to use for the same problem and regime, each with its `method`.

        >>> NoTheorem('It has none. Use exact, or simulate with method="margin" for it.').advised
        (('exact', None), ('simulate', 'margin'))
        """
        advice = "".join(re.findall(r"\bUse [^.]*\.", str(self)))
        verbs = re.findall(r'\b(limit|exact|simulate)\b(?: with method="(\w+)")?', advice)
        return tuple((verb, method or None) for verb, method in verbs)

    @classmethod
    def of(cls, theorem: str, hypothesis: str, got: object, instead: str) -> NoTheorem:
        """Compose the refusal.

        >>> print(NoTheorem.of("Theorem 2", "σ(u) = u²", "relu", "Use exact."))
        Theorem 2 assumes σ(u) = u². Got relu instead. Use exact.
        """
        return cls(" ".join(f"{theorem} assumes {hypothesis}. Got {got} instead. {instead}".split()))


class TooLarge(LazyscopeError):
    """The computation would not fit in the memory that is available; carries the estimate."""


class NotConverged(LazyscopeError):
    """An iteration or a quadrature missed its tolerance; says which, by how much, and what to change."""


class UnreadableFile(LazyscopeError):
    """A file that is missing, not a table of numbers, or could run code when opened."""
