"""The command line; the only code that uses Typer, Rich and Textual."""
