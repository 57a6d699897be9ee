"""The attacks of `make soak` know every option there is: one that they do not know would never be tried."""

from lazyscope.cli import main
from soak.grammar import unknown


def test_the_attack_on_commands_knows_every_option():
    assert unknown(main) == []
