"""What each command of `mulligan` takes; what it does is in the modules above."""
