"""READ FIRST: the steps of one issue (phase.py), the decision, the prompts, and the ports."""
