"""What all nouns of the command line share: text of others made safe, complaints with their exit status, how a command ends.

It knows no noun and asks nobody. Begin with `ending`: every command runs inside it.
"""
