"""Records of one publisher in the order of their numbers, and what is missing (LOG-006, LOG-009)."""
