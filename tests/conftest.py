"""What all tests need."""

import os
import signal

os.environ["LAZYSCOPE_PROGRESS"] = "0"  # lines of progress come by the clock: what a test compares has none of them


def pytest_configure(config):
    """Let Ctrl-C be tested: whoever starts us in the background has it ignored, and child processes inherit that."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
