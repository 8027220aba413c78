"""What all nouns of the command line share: text of others made safe, complaints with their exit status, how a command ends.

It knows no noun, and connects to nothing. Start with `ending.py`: every command runs inside it.
"""
