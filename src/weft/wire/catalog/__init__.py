"""The Distributive Broker Protocol on the wire (specs/02; seed `dbp-core-catalog-service`)."""
