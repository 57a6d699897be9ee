"""The explorer: a local web page where theory moves with the sliders, on a JSON API of its own.

    view × state → lines (`limit`, at once) and dots (`exact` and `simulate`, as jobs in worker processes)

A *view* (`views/`) is a question; its *state* is a flat record of bounded numbers and names, which is at the same time
the query of the API, the link of the page and the description of its controls. `api` serves views, `jobs` runs what
takes seconds, `server` starts, `export` writes a view of everything into one file.
"""
