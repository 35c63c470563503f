"""Tells people elsewhere than on GitHub that they are needed."""
