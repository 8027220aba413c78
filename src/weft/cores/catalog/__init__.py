"""The broker of the Distributive Broker Protocol: who is out there, where, and is it alive (docs/catalog.md)."""
