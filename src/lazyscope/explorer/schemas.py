"""What the API answers, as documented types; numbers that are infinite are null, and a note says where.

Answers to sliders are built as plain dictionaries of this shape and written at once: checking every number of a line
against its type would take longer than computing it. The tests check instead that each view's answers have the shape.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class Record(BaseModel):
    """A record without surprises: nothing but the fields named."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class ClaimRecord(Record):
    """What a number rests on."""

    key: str = Field(description="fidelity/problem/regime/title, as `lazyscope claims` has it")
    title: str
    theorem: str
    citations: list[str]
    assumptions: list[str]
    erratum: str


class Line(Record):
    """A curve of theory."""

    name: str
    role: str = Field(description="what the line is, for its colour: rf, nt, nn, bayes, bias, …")
    panel: int
    dash: Literal["solid", "dash", "dot"]
    x: list[float | None]
    y: list[float | None]
    claim: str = Field(description="key of the claim behind it")
    low: list[float | None] | None = Field(None, description="lower end of its band, where it has one")
    high: list[float | None] | None = Field(None, description="upper end of its band")


class Note(Record):
    """What has no line or no dots, and why."""

    about: str
    message: str


class Mark(Record):
    """A vertical line at a place that means something."""

    x: float
    label: str


class Axis(Record):
    """An axis of the picture."""

    label: str
    log: bool
    range: tuple[float, float] | None = Field(description="null where the numbers decide")


class TableRecord(Record):
    """A table that a page may ask about: an example, or a file that was sent."""

    data: str = Field(description="its key, for the state of the view")
    name: str
    rows: int
    columns: list[str]
    target: str = Field(description="the column that is predicted, or the likeliest")


class Dots(Record):
    """Finite networks: values with the standard error of their mean over draws, null from a single draw."""

    name: str
    role: str
    panel: int
    fidelity: Literal["exact", "simulate"]
    x: list[float | None]
    y: list[float | None]
    stderr: list[float | None]
    claim: ClaimRecord


class Kept(Record):
    """Dots that were computed beforehand, and what makes them again."""

    dots: list[Dots]
    notes: list[Note]
    command: str
    python: str
    about: str = Field(description="where they come from, in a line")


class Frames(Record):
    """A matrix at every moment, of which the page shows one: a heat map in time."""

    control: str = Field(description="the field of the state that is the moment")
    mark: str = Field(description="label of the mark that stands at the moment")
    title: str
    x: list[float]
    rows: list[str]
    columns: list[str]
    values: list[list[list[float]]] = Field(description="moment, row, column; 1 is the whole of a direction")


class Answer(Record):
    """The lines of a view at one state, the claims behind them, and what makes them again."""

    view: str
    problem: str
    x: Axis
    panels: list[Axis]
    lines: list[Line]
    marks: list[Mark]
    notes: list[Note]
    claims: list[ClaimRecord]
    arguments: dict[str, str | float | int | bool]
    command: str = Field(description="command line that prints the same numbers")
    python: str = Field(description="Python that computes the same numbers")
    frames: Frames | None = Field(None, description="a heat map in time")
    at: float | None = Field(None, description="the place on the axis that is read out; null for its middle")
    reading: str | None = Field(None, description="the current point in words; null where the lines say it")
    kept: Kept | None = Field(None, description="dots that come with the package, where a picture has no line")
    table: TableRecord | None = Field(None, description="the table behind it, if it is one")


class DotsAnswer(Record):
    """All dots of one fidelity at one state."""

    view: str
    fidelity: Literal["exact", "simulate"]
    dots: list[Dots]
    notes: list[Note]
    arguments: dict[str, str | float | int | bool]
    command: str
    python: str


class Accepted(Record):
    """A job that was accepted: read its events (server-sent), or DELETE it."""

    job: str
    events: str
    cancel: str
    arguments: dict[str, str | float | int | bool]
    command: str
    python: str


class Problem(Record):
    """What was wrong with a request, or with a job, in one line."""

    error: str


class Cancelled(Record):
    """The job was ended, or had ended already."""

    job: str
    cancelled: bool


class Control(Record):
    """A slider, a choice or a switch of the page: one field of a view's state."""

    name: str
    label: str
    help: str
    kind: Literal["linear", "log", "choice", "switch", "levels", "file", "column", "time"]
    group: str
    default: str | float | int | bool
    low: float | None = None
    high: float | None = None
    step: float | None = None
    zero: bool = Field(False, description="whether a logarithmic slider has zero at its left end")
    choices: list[str] | None = None
    names: list[str] | None = Field(None, description="what the choices are called in the page")
    when: dict[str, str | bool] | None = Field(None, description="the choices under which it has an effect")
    largest: int | None = Field(None, description="bytes of a file at most")
    paper: str | None = Field(None, description="levels to show while the spectrum is the paper's own draw")


class Preset(Record):
    """A name for some values of the state."""

    name: str
    state: dict[str, str | float | int | bool]


class ViewRecord(Record):
    """What the page needs to know to show a view; the state of a view is the query of `/api/limit/<name>`."""

    name: str
    title: str
    text: str = Field(description="two sentences on what is to be seen")
    theorem: str
    controls: list[Control]
    presets: list[Preset]
    fidelities: list[Literal["exact", "simulate"]]


class ViewList(Record):
    """All views, and the version that shows them."""

    version: str
    views: list[ViewRecord]
