"""When not to believe that so many are dead (BEA-023)."""
