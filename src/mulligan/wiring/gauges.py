"""What GitHub's answers say of this process's tokens, whatever the configuration says now."""

from mulligan.github.gauges import Gauges

GAUGES = Gauges()
"""One for the process."""

__all__ = ["GAUGES", "Gauges"]
