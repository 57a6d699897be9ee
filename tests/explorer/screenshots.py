"""Take the screenshots of docs/explorer.md anew: `python tests/explorer/screenshots.py`."""

import sys
import time
from pathlib import Path

from playwright.sync_api import sync_playwright

sys.path.insert(0, str(Path(__file__).parent))
from conftest import chromium, explore

FOLDER = Path(__file__).parents[2] / "docs" / "images"
DESK, PROJECTOR, PHONE = (1280, 720), (1920, 1080), (390, 844)
SHOTS = [
    ("lazy-or-not", "#quadratic?d=60&draws=4&dots=true", DESK, "light"),
    ("directions", "#directions?dots=true", DESK, "light"),
    ("training", "#training?runs=3&step=0.004&dots=true", DESK, "light"),
    ("committee", "#training?target=committee&time=30&runs=4&dots=true", DESK, "dark"),
    ("lazy-to-rich", "#rich?scale=10", DESK, "light"),
    ("mixture", "#mixture?levels=0,0,0,0.5,0.5,1,2,3&dots=true", DESK, "dark"),
    ("double-descent", "#descent?dots=true", DESK, "light"),
    ("any-degree", "#degrees?dots=true", DESK, "light"),
    ("max-margin", "#margin?dots=true", DESK, "dark"),
    ("beyond-linear", "#beyond?dots=true", DESK, "light"),
    ("your-data", "#data?ridge=0.001&width=100&samples=300&dots=true", DESK, "light"),
    ("samples", "#beyond?what=samples", DESK, "light"),
    ("projector", "#descent?axis=ridge&psi1=10&noise=1&dots=true", PROJECTOR, "light"),
    ("phone", "#quadratic?levels=0,0,0,0,0,0,0,3", PHONE, "light"),
    ("phone-dark", "#margin?dots=true", PHONE, "dark"),
]


def main() -> None:
    """Wait for the dots of every picture, and keep it."""
    with explore("--no-browser") as (_, address), sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        for name, link, (width, height), scheme in SHOTS:
            if sys.argv[1:] and name not in sys.argv[1:]:
                continue
            context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
            page = context.new_page()
            page.add_init_script("localStorage.setItem('lazyscope-tour', 'seen')")
            page.goto(address + link)
            page.wait_for_selector("html[data-drawn]", timeout=60_000)
            end = time.monotonic() + 600
            while "dots=true" in link and not page.inner_text("#status").startswith("Done"):
                assert time.monotonic() < end, page.inner_text("#status")
                page.wait_for_timeout(200)
            page.wait_for_timeout(700)
            page.evaluate("document.getElementById('status').style.visibility = 'hidden'")  # of this machine, today
            file = FOLDER / f"explorer-{name}.png"
            page.screenshot(path=file)
            print(file, f"{file.stat().st_size / 1e3:.0f} kB")
            context.close()
        browser.close()


if __name__ == "__main__":
    main()
