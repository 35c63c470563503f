"""Did it work? Run the checks, condense their output, guard the change."""
