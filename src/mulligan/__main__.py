"""`mulligan`, and `python -m mulligan`."""


def main() -> None:
    """Run the command line."""
    from mulligan.surfaces.cli.app import app

    app()


if __name__ == "__main__":
    main()
