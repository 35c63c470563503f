"""Setup commands, checks and the reviewer: run them, judge the results; the guards."""
