"""Full-domain generalization: the lattice of levels, its minimal nodes, the best node."""
