"""Tables that users bring into the page: kept on a shelf, read and decomposed in a process of their own."""
