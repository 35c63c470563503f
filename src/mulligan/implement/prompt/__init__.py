"""What follows an attempt: the decision, the record, and what the next attempt is told. Pure."""
