"""The messages of documents that several people edit (docs/doc.md; seed: DerbyOS): peers, operations in XML, clients.

It keeps no state. Start with `messages.py`, then `operations.py`.
"""
