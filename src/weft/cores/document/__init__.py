"""Documents edited together, with a log that can be replayed (docs/doc.md; seed: DerbyOS)."""
