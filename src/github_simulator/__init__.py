"""A GitHub on this machine, for `mulligan demo`, `mulligan simulate` and tests.

`world.py` holds its state and what people do there. `app.py` answers HTTP, and `routes/` each
kind of resource.
"""
