"""How work and memory grow with the size of what is worked on: what bench/curves.py measures, fits and shows."""
