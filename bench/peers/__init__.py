"""What the benches of chains share; not benches themselves."""
