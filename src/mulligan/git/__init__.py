"""How git is called, and what its answers mean; several adapters stand on this."""
