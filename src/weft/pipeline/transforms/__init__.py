"""Functions from DataFrame to DataFrame, each a few expressions that end in a select.

They read no file, keep no state and run no Python per row. Start with `values.py`: samples become values.
"""
