"""The words of documents edited together (specs/04; seed: DerbyOS): frames between peers, operations in XML, clients."""
