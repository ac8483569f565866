"""The solvers behind one step and one link."""
