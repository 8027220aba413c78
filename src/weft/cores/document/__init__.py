"""Documents that several people edit at once, with a log that can be replayed (docs/doc.md; seed: DerbyOS).

No peer is a master, and no operation is changed after it was entered. Start with `states.py` (a peer), `log.py` (all
operations), then `fold`.
"""
