"""Keep agents, set-up lines and checks away from everything that they do not need (SPEC 13)."""
