"""The attacks of `make soak` know every option there is: one that they do not know would never be tried."""

from soak.grammar import unknown

from lazyscope.cli import main


def test_the_attack_on_commands_knows_every_option():
    assert unknown(main) == []
