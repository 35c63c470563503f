"""Processes: start them, confine them, limit their network, and stop them."""
