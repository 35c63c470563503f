"""The command line; the only code that knows Typer and Rich."""
