"""The words of documents edited together (docs/doc.md; seed: DerbyOS): frames between peers, operations in XML, clients.

It keeps no state. Start with `messages.py`, then `operations.py`.
"""
