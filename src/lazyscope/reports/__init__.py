"""Reports: what a theorem says beside what a network does, as labelled numbers; one question a file."""
