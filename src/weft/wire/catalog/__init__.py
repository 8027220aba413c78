"""The Distributive Broker Protocol on the wire (docs/catalog.md; seed `dbp-core-catalog-service`).

It keeps no state. Start with `messages.py`.
"""
