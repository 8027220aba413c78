"""When to ask an instance whether it is there (BEA-016, BEA-017)."""
