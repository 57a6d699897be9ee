"""The controls of a view: bounded numbers and names from a list, each with the words that the page shows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from lazyscope.activations import activation_names

if TYPE_CHECKING:
    ActivationName = str
else:
    ActivationName = Literal[activation_names()]  # the library's list: no other function can be named in a request


class State(BaseModel):
    """The state of a view: bounded numbers and names from a list, so that no request can ask for more."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    def in_effect(self) -> dict[str, Any]:
        """Return all values, those that have no effect on the picture at their defaults."""
        values = self.model_dump()
        fields: dict[str, Any] = type(self).model_fields
        for name, known in fields.items():
            when = known.json_schema_extra.get("when") or {}
            if name == values.get("axis") or any(values[other] != value for other, value in when.items()):
                values[name] = known.default
        return values


def slider(
    default: float, low: float, high: float, label: str, help_: str, *, step: float = 0.0, log: bool = False,
    zero: bool = False, group: str = "theory", when: dict[str, str | bool] | None = None,
) -> Any:  # fmt: skip
    """Return the field of a number between bounds; `zero` lets a logarithmic slider end at 0 on its left.

    `when` names the choice under which it has an effect.
    """
    extra: Any = {
        "label": label,
        "kind": "log" if log else "linear",
        "group": group,
        "step": step,
        "low": low,
        "zero": zero,
        "when": when,
    }
    return Field(default, ge=0.0 if zero else low, le=high, description=help_, json_schema_extra=extra)


def moment(default: float, low: float, high: float, label: str, help_: str) -> Any:
    """Return the field of a time that the page moves along, or plays, without asking for another line."""
    extra: Any = {"label": label, "kind": "time", "group": "time", "step": 0.0, "low": low}
    return Field(default, ge=low, le=high, description=help_, json_schema_extra=extra)


def choice(default: str, label: str, help_: str, *, names: Sequence[str] | None = None) -> Any:
    """Return the field of a name from a list (a Literal); `names` are what the page calls them."""
    extra: Any = {"label": label, "kind": "choice", "group": "theory", "names": None if names is None else list(names)}
    return Field(default, description=help_, json_schema_extra=extra)


def switch(default: bool, label: str, help_: str, *, group: str = "picture") -> Any:
    """Return the field of a yes or no."""
    return Field(default, description=help_, json_schema_extra={"label": label, "kind": "switch", "group": group})


_SEEDS = 10_000


def draws_field(more: str = "", *, usual: int = 10) -> Any:
    """Return the field of the number of draws: enough for a standard error that can be believed."""
    return slider(usual, 2, 40, "Draws", f"Independent draws a dot.{more}", step=1, group="dots")


def seed_field() -> Any:
    """Return the field of the seed."""
    return slider(0, 0, _SEEDS - 1, "Seed", "The same seed draws the same dots.", step=1, group="dots")


def own_seed(seed: int, place: int) -> int:
    """Return the seed of a dot of its own, for calls that would draw the same sample at every place on the axis.

    >>> own_seed(7, 0), own_seed(7, 2)
    (7, 20007)
    """
    return seed + _SEEDS * place
