"""The convergent document (DOC): a schema's genesis, and all operations of the log folded over it in one order for all."""
