"""Every setting, its default and its meaning; the only place where configuration is read."""
