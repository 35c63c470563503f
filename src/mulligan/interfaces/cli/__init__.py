"""The command line; the only code that uses Typer and Rich."""
