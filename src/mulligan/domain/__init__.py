"""Facts and rules without I/O: issues, events, status, outcomes, eligibility, errors. Pure."""
