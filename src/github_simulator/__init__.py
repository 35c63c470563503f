"""A GitHub that lives on this machine: for `mulligan demo`, `mulligan simulate` and tests.

`world.py` is its state and how a person drives it, `app.py` answers HTTP and serves it, and
`seed.py` makes the demo's repository. It imports nothing of Mulligan.
"""
