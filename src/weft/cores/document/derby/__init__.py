"""Roller derby, the example: which jam it is, and what a scoreboard shows (JAM-001 to JAM-041; pure, as the fold is)."""
