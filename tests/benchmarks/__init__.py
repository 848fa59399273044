"""Short runs of what `make bench` does whole; they make bundles, and so need pip and some ten seconds."""
