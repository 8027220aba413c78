"""Roller derby, the example: which jam it is, and what a scoreboard shows (specs/04, section 6; pure, as the fold is)."""
