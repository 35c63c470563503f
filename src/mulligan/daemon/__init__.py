"""When to do what: intake, visits, recovery; the only code that decides who is next."""
