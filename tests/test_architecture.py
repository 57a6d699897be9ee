"""The architecture, as facts: who may import whom, what is loaded when."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import lazyscope

PACKAGE = Path(lazyscope.__file__).parent
MODULES = sorted(PACKAGE.rglob("*.py"))
# Each layer may import its own and those before it.
LAYERS = [
    {"errors", "checks", "progress", "compiled"},
    {"matrices", "quadrature", "named_activations", "exponential"},
    {"activations", "problems"},
    {"derivatives"},
    {"regimes"},
    {"weights", "evidence", "results"},
    {"limits", "exact", "simulate"},
    {"registry"},
    {"draws"},
    {"trials", "particle_runs"},
    {"verbs"},
    {"side_by_side"},
    {"reports"},
    {"estimators"},
    {"files", "plotting"},
    {"lens"},
    {"sweep"},
    {"figures"},
    {"explorer"},
    {"cli"},
]
RANK = {name: rank for rank, layer in enumerate(LAYERS) for name in layer}


def part(module):
    """The layer name of a module path: its first folder, or its own name."""
    relative = module.relative_to(PACKAGE)
    return relative.parts[0].removesuffix(".py")


def imports(module):
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            if node.module == "lazyscope":
                yield from (f"lazyscope.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("module", MODULES, ids=lambda m: str(m.relative_to(PACKAGE)))
def test_imports_point_downward_and_fidelities_keep_apart(module):
    mine = part(module)
    if mine == "__init__":
        return
    for name in imports(module):
        pieces = name.split(".")
        if pieces[0] != "lazyscope" or len(pieces) == 1 or pieces[1].startswith("__"):
            continue
        other = pieces[1]
        assert RANK[other] <= RANK[mine], f"{mine} imports {other}, which stands above it"
        if RANK[other] == RANK["limits"] == RANK[mine]:
            assert other == mine, f"the fidelities {mine} and {other} must not know each other"


def test_every_module_has_a_layer():
    assert {part(module) for module in MODULES} - {"__init__"} <= set(RANK)


def loaded(code, *names):
    script = f"import sys; {code}; print(*[n for n in {names!r} if n in sys.modules])"
    return subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout.split()


def test_importing_the_package_loads_nothing_heavy():
    heavy = ("numpy", "scipy", "xarray", "matplotlib", "rich", "click")
    assert loaded("import lazyscope", *heavy) == []
    assert loaded("import lazyscope; lazyscope.limit; lazyscope.exact", *heavy) == ["numpy"]


def test_the_verb_exact_is_not_shadowed_by_its_package():
    code = "import lazyscope.exact.tangent, lazyscope as ls; assert callable(ls.exact) and callable(ls.limit)"
    assert loaded(code, "lazyscope.exact") == ["lazyscope.exact"]


def test_public_names_are_complete_and_documented():
    for name in lazyscope.__all__:
        value = getattr(lazyscope, name)
        assert name == "__version__" or (value.__doc__ and len(value.__doc__) > 20)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        lazyscope.nothing  # noqa: B018
    assert set(dir(lazyscope)) >= set(lazyscope.__all__)
