"""What all tests need."""

import signal


def pytest_configure(config):
    """Let Ctrl-C be tested: whoever starts us in the background has it ignored, and child processes inherit that."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
