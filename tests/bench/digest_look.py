"""Look into what digests leave out: PYTHONPATH=tests python tests/bench/digest_look.py [CASE]."""

import sys

from world.digest_corpus import cases, missing, recall


def main(names: list[str]) -> None:
    for case in cases():
        if names and not any(case.name.startswith(name) for name in names):
            continue
        text = case.digest().text
        share = recall(case, text)
        if names or share < 1:
            print(f"{case.name} ({len(case.output)}): {share:.2f} {missing(case, text)}")  # noqa: T201
        if names:
            print(text)  # noqa: T201


if __name__ == "__main__":
    main(sys.argv[1:])
