"""An option that was written is used, or refused in one line; none is ignored."""

import pytest
from click.testing import CliRunner

from lazyscope.cli import main
from lazyscope.cli.asking import declared

IGNORED = [
    ("figure --list --preset quick", "--preset", "Got --list instead"),
    ("figure fig1 --list", "NAME", "Got --list instead"),
    ("bench --list exact_rf", "NAMES", "Got --list instead"),
    ("limit quadratic --d 4 --force", "--force", "Got no file to write instead. Leave it out, or add --out or --plot"),
    ("report interpolation --n 4 --d 2 --force", "--force", "or add --out."),
    ("report lazy-to-rich --d 2 --json --force", "--force", "or add --out."),
    ("report mean-field parity --d 4 --force", "--force", "or add --out."),
    ("lens --example diabetes --json --force", "--force", "or add --report or --out"),
    ("lens --example diabetes --task regression", "--task", "Got --example instead. Leave it out, or name a file"),
    ("forecast --example diabetes --target bmi", "--target", "Got --example instead"),
    ("forecast --example diabetes --drop age", "--drop", "or name a file"),
    ("forecast --example diabetes --force", "--force", "or add --out or --plot"),
    ("sweep run missing.toml --address 127.0.0.1:8786", "--address", "--backend loky instead. Leave it out, or add"),
    ("sweep run missing.toml --backend dask --workers 2", "--workers", "or add --backend loky"),
    ("explore --export page.html --port 8765", "--port", "Got --export instead"),
    ("explore --port 99999 --force", "--force", "or add --export"),
    ("limit multi-index --rho 0.5 --samples nonsense", "--samples", "RF, NT, which take --rho"),
    ("limit multi-index --rho 0.5 --ridge 3", "--ridge", "or add --method ridge"),
    ("simulate multi-index --d 8 --width 2 --samples 40 --ridge 3", "--ridge", "or add --method ridge"),
    (
        "limit multi-index --d 8 --times 1",
        "--times",
        "RF, NT, which take --rho, instead. Leave it out, or ask for --regime nn",
    ),
    ("exact mixture --d 20 --regime bayes --width 1", "--width", "Bayes, which takes no size"),
    ("exact mixture --d 20 --regime bayes --activation tanh", "--activation", "Leave it out"),
    ("flow quadratic --d 4 --width 2 --batch 10", "--batch", "or add --step-size"),
    ("flow quadratic --d 4 --regime nt --second-layer fixed", "--second-layer", "or add nn to --regime"),
    ("flow quadratic --d 4 --alpha 2 --regime nn --second-layer fixed", "--second-layer", "Leave it out, or --alpha"),
]


@pytest.mark.parametrize(("line", "option", "told"), IGNORED)
def test_what_nothing_takes_is_refused(line, option, told):
    result = CliRunner().invoke(main, line.split())
    assert result.exit_code == 2
    assert result.stderr.startswith(f"lazyscope: error: The {option} parameter of lazyscope ")
    assert "must go with something that takes it" in result.stderr
    assert told in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize("verb", ["limit", "exact", "simulate", "compare"])
def test_every_size_and_setting_of_a_verb_is_taken_by_one_of_its_claims(verb):
    """So that the refusal never concerns an option that no command line could use."""
    from lazyscope.cli.asking.unused import _taken

    for question in declared.questions(verb).values():
        taken = {name for claim in question.claims for name in _taken(claim)}
        own = {option.name for option in question.kind.options}
        known = {*question.arguments, *question.regime_options, *question.protocol_options}
        assert known - own <= taken


def test_an_option_that_is_left_at_its_default_is_not_refused():
    result = CliRunner().invoke(main, ["limit", "multi-index", "--rho", "0.5"])
    assert result.exit_code == 0
