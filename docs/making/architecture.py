"""A drawing of the package made from its code: layers from the contract, lines and imports counted."""

from __future__ import annotations

import ast
import tomllib
from collections import Counter
from pathlib import Path

SAYS = {
    "cli": "the command line",
    "explorer": "the local web page",
    "experiments": "question, work, numbers, picture, verdict",
    "sweep": "many runs: plan, pool, store",
    "lenses": "your data, your network",
    "estimators": "scikit-learn's face",
    "runs": "Run → row → labelled Dataset",
    "limits": "the verb limit: theorems",
    "population": "the verb exact: integrals, linear algebra",
    "training": "the verb simulate: data, training, test",
    "evidence": "claims, results, the unit of work",
    "weights": "laws of first-layer weights",
    "protocols": "SGD and its settings",
    "files": "reading and writing",
    "regimes": "which weights are trained",
    "problems": "what is to be learned",
    "activations": "what σ is",
    "numerics": "matrices, quadrature, solvers",
    "progress": "how far work has come",
    "checks": "arguments at the door",
    "errors": "one shape of message",
    "plugins": "what other packages bring",
}


def layers(project: Path) -> list[list[str]]:
    """Return the layers of pyproject.toml, highest first.

    >>> layers(Path(__file__).parents[2] / "pyproject.toml")[0]
    ['cli']
    """
    contracts = tomllib.loads(project.read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]
    rows = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    return [[name.strip().removeprefix("lazyscope.") for name in row.replace("|", ":").split(":")] for row in rows]


def counted(package: Path) -> tuple[Counter[str], Counter[tuple[str, str]]]:
    """Return the lines of code of every part, and the imports between parts."""
    lines: Counter[str] = Counter()
    imports: Counter[tuple[str, str]] = Counter()
    for module in package.rglob("*.py"):
        part = module.relative_to(package).parts[0].removesuffix(".py")
        text = module.read_text(encoding="utf-8")
        lines[part] += len(text.splitlines())
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("lazyscope"):
                steps = node.module.split(".")
                for name in [steps[1]] if len(steps) > 1 else [alias.name for alias in node.names]:
                    imports[part, name] += part != name
    return lines, +imports


def drawing(project: Path, package: Path) -> str:
    """Return the drawing, SVG: a row for each layer, a box for each part, a line for each pair that imports."""
    rows = layers(project)
    lines, imports = counted(package)
    wide, high, gap = 1040, 56, 34
    boxes: dict[str, tuple[float, float, float]] = {}
    for depth, row in enumerate(rows):
        span = (wide - 20 * (len(row) - 1)) / len(row)
        for place, name in enumerate(row):
            size = min(span, 340.0)
            boxes[name] = (place * (span + 20) + (span - size) / 2, depth * (high + gap), size)
    tall = len(rows) * (high + gap) - gap
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="-4 -4 {wide + 8} {tall + 8}" role="img" '
        'font-family="system-ui, sans-serif">',
        "<title>The layers of lazyscope; imports point downward</title>",
    ]
    for (above, below), count in sorted(imports.items()):
        if above in boxes and below in boxes:
            (x, y, w), (u, v, s) = boxes[above], boxes[below]
            width = min(4.0, 0.5 + count / 12)
            parts.append(
                f'<line x1="{x + w / 2:.0f}" y1="{y + high}" x2="{u + s / 2:.0f}" y2="{v}" stroke="#8a94a6" '
                f'stroke-opacity="0.35" stroke-width="{width:.1f}"/>'
            )
    for name, (x, y, w) in boxes.items():
        parts.append(
            f'<rect x="{x:.0f}" y="{y}" width="{w:.0f}" height="{high}" rx="6" fill="#eef2f7" stroke="#44546a"/>'
        )
        title = f"{name} · {lines[name]:,} lines"
        parts.append(
            f'<text x="{x + w / 2:.0f}" y="{y + 23}" text-anchor="middle" font-size="15" fill="#16202e">{title}</text>'
        )
        said = SAYS.get(name, "")
        small = 12 if w > 250 else 10.5
        parts.append(
            f'<text x="{x + w / 2:.0f}" y="{y + 42}" text-anchor="middle" font-size="{small}" '
            f'fill="#44546a">{said}</text>'
        )
    return "\n".join([*parts, "</svg>", ""])
