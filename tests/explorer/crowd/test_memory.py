"""What is freed goes back: arrays between small objects that stay do not hold a server's memory."""

import subprocess
import sys

import pytest

FREES = """
import sys
import psutil
from lazyscope.explorer.memory import give_back

if sys.argv[1] == "given back":
    give_back()
large = bytearray(1 << 24)
del large  # after which the C library takes such sizes from its pool, unless it is told
kept, arrays = [], []
for _ in range(100):
    arrays.append(bytearray(b"x") * (1 << 20))
    kept.append(bytearray(4000))
before = psutil.Process().memory_info().rss
del arrays
print(before - psutil.Process().memory_info().rss)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="other C libraries are left as they are")
def test_freed_arrays_go_back_to_the_system():
    returned = [
        int(subprocess.run([sys.executable, "-c", FREES, how], capture_output=True, text=True, check=True).stdout)
        for how in ("kept", "given back")
    ]
    assert returned[1] > 95e6
    assert returned[0] < 50e6  # else the setting is not needed any more
