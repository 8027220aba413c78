"""Documents edited together, with a log that can be replayed (specs/04; seed: DerbyOS)."""
