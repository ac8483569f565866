"""Where raw points come from: one module a dataset; each yields the points table."""
