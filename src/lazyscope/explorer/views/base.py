"""What a view is: a state with its controls, lines that answer it at once, and a plan for its dots."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

from lazyscope.explorer.schemas import Control, Preset, ViewRecord
from lazyscope.explorer.views.controls import State

if TYPE_CHECKING:
    from lazyscope.explorer.views.calls import Plan

Drawn = Literal["exact", "simulate"]
Value = str | float | int | bool


@dataclass(frozen=True, eq=False)
class View:
    """A question with sliders.

    `lines` answers a state at once, `plan` says which calls make its dots in a fidelity. `export` gives the values of
    the state that a static page has answers for; the others stay at their defaults. A view whose lines may wait `long`
    has threads of its own, so that no other waits for it.
    """

    name: str
    title: str
    text: str
    theorem: str
    state: type[State]
    lines: Callable[[Any], dict[str, Any]]
    plan: Callable[[Any, Drawn], Plan]
    fidelities: tuple[Drawn, ...]
    presets: Mapping[str, Mapping[str, Value]]
    export: Mapping[str, Sequence[Value]]
    long: bool = False

    def record(self) -> ViewRecord:
        """Describe the view to the page."""
        return ViewRecord(
            name=self.name,
            title=self.title,
            text=self.text,
            theorem=self.theorem,
            controls=list(self._controls()),
            presets=[Preset(name=name, state=dict(state)) for name, state in self.presets.items()],
            fidelities=list(self.fidelities),
        )

    def _controls(self) -> Iterator[Control]:
        for name, known in self.state.model_fields.items():
            extra: Any = known.json_schema_extra
            bounds = {type(bound).__name__: bound for bound in known.metadata}
            chosen = list(get_args(known.annotation)) if extra["kind"] == "choice" else extra.get("choices")
            high: Any = bounds.get("Le")
            yield Control(
                name=name,
                label=extra["label"],
                help=known.description or "",
                kind=extra["kind"],
                group=extra["group"],
                default=known.default,
                low=extra.get("low"),
                high=None if high is None else high.le,
                step=extra.get("step"),
                zero=extra.get("zero", False),
                choices=chosen,
                names=extra.get("names"),
                when=extra.get("when"),
                largest=extra.get("largest"),
                paper=extra.get("paper"),
            )
