"""The words of documents edited together (docs/doc.md; seed: DerbyOS): frames between peers, operations in XML, clients."""
