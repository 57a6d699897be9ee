"""A tab of a real browser with the explorer in it, for the tests of the page."""

import csv
import io
import time
from urllib.parse import urlsplit

SLIDERS = {
    "quadratic": "gamma",
    "directions": "rho",
    "mixture": "strength",
    "training": "rho",
    "rich": "rho",
    "descent": "noise",
    "degrees": "e2",
    "margin": "signal",
    "beyond": "alpha",
    "data": "ridge",
}
LINES = {
    "quadratic": 3,
    "directions": 7,
    "mixture": 4,
    "training": 3,
    "rich": 3,
    "descent": 4,
    "degrees": 4,
    "margin": 3,
    "beyond": 3,
    "data": 3,
}


class Page:
    """A tab that remembers every request and everything that went wrong in it."""

    def __init__(self, browser, address, **context):
        self.context = browser.new_context(**{"viewport": {"width": 1280, "height": 800}, **context})
        self.context.set_default_timeout(120_000)
        self.tab = self.context.new_page()
        self.address, self.requests, self.wrong = address, [], []
        self.tab.on("request", lambda request: self.requests.append(request.url))
        self.tab.on("console", lambda said: said.type in ("error", "warning") and self.wrong.append(said.text))
        self.tab.on("pageerror", lambda error: self.wrong.append(str(error)))

    def open(self, where):
        """Follow a link, and wait for its picture; within the page that takes no reload."""
        self.tab.goto(self.address + where)
        self.tab.wait_for_selector(f"a[data-view={where[1:].partition('?')[0]}][aria-current=page]")
        self.drawn()

    def drawn(self):
        """Wait until what is wanted is what is drawn; the first answer of a fresh checkout compiles code."""
        self.until(lambda: self.query() and self.query() == self.tab.get_attribute("html", "data-wanted"), 300)

    def settled(self):
        """Wait until Plotly, too, has learnt what is drawn: what it holds is what the CSV has."""
        self.drawn()
        self.until(
            lambda: all(
                float(row["y"]) in self.traces()[row["name"]][1]
                for row in self.rows()
                if row["kind"] in ("limit", "forecast") and row["y"]
            )
        )

    def query(self):
        """The view and the state on the screen."""
        return self.tab.get_attribute("html", "data-drawn")

    def until(self, fact, seconds=120.0):
        """Wait for a fact; the time is what a busy machine may take, not a claim."""
        end = time.monotonic() + seconds
        while not fact():
            assert time.monotonic() < end, (self.tab.inner_text("#status"), self.tab.inner_text("#failure"), self.wrong)
            self.tab.wait_for_timeout(20)

    def traces(self):
        """What Plotly holds: name → (x, y), of lines only."""
        found = self.tab.evaluate(
            "document.getElementById('chart').data.filter(t => t.mode === 'lines').map(t => [t.name, t.x, t.y])"
        )
        return {name: (x, y) for name, x, y in found}

    def paths(self):
        return self.tab.evaluate("[...document.querySelectorAll('#chart path.js-line')].map(p => p.getAttribute('d'))")

    def rows(self):
        """The numbers of the picture, as its CSV has them."""
        lines = [line for line in self.tab.evaluate("lazyscope.csv()").splitlines() if not line.startswith("#")]
        return list(csv.DictReader(io.StringIO("\n".join(lines))))

    def drop(self):
        """Drop dots, and wait until all have landed."""
        self.tab.click("#drop")
        self.until(lambda: self.tab.inner_text("#status").startswith("Done"), 300)

    def check(self):
        """Nothing went wrong, and nobody else was asked."""
        own = urlsplit(self.address)
        for url in self.requests:
            parts = urlsplit(url)
            assert parts.scheme in ("data", "blob") or parts.netloc == own.netloc, f"a request to {url}"
        assert self.requests
        assert not self.wrong
