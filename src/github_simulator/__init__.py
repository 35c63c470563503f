"""A simulated GitHub on this machine, for `mulligan demo`, `mulligan simulate` and tests.

`world.py` holds its state and people's actions. `app.py` serves HTTP; `routes/` has one module for
each kind of resource.
"""
