"""Starts processes, confines them, limits their network, and stops them."""
