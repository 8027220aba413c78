"""What everything rests on: instants, paths, version vectors, records, effects, limits and errors.

It imports nothing of Weft, and knows no protocol, socket or clock. Start with `effects.py` (what a core may ask for)
and `vectors.py` (the one subtraction under every resend).
"""
