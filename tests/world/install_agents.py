"""Install the real agents, all but those named: `python -m world.install_agents PLACE [KIND…]`."""

import sys
from pathlib import Path

from world.real_agents import PACKAGES, install


def main() -> None:
    place, *without = sys.argv[1:]
    for package in PACKAGES:
        if package.kind not in without:
            directory = install(package, Path(place).absolute())
            version = package.installed(Path(place))
            sys.stdout.write(f"agent {package.kind}: {package.name} {version} in {directory}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
