"""`checkout` is proposed for what a repository has, as its CI checks it out."""

import pytest

from mulligan.config.load import load_policy
from mulligan.config.policy import RECURSIVE, CheckoutSettings
from mulligan.interfaces.onboarding.checkout import checkout_lines, propose_checkout
from mulligan.interfaces.onboarding.tree import Machine, RepositoryFiles
from mulligan.interfaces.onboarding.workflows import jobs_of

MODULES = {".gitmodules": '[submodule "x"]\n\tpath = x\n\turl = ../x\n'}
LFS = {"assets/.gitattributes": "*.png filter=lfs diff=lfs -text\n"}


def workflow(**given: str) -> str:
    lines = "".join(f"          {name}: {value}\n" for name, value in given.items())
    return (
        "on: push\njobs:\n  test:\n    runs-on: ubuntu-latest\n    steps:\n"
        "      - uses: actions/checkout@v4\n"
        f"        with:\n{lines or '          fetch-depth: 1'}\n      - run: make test\n"
    )


@pytest.mark.parametrize(
    ("files", "workflows", "expected"),
    [
        ({}, [], CheckoutSettings()),
        ({}, [workflow(submodules="recursive", lfs="true")], CheckoutSettings()),
        ({".gitmodules": "# none\n", ".gitattributes": "*.c text\n"}, [], CheckoutSettings()),
        ({"README.md": "filter=lfs [submodule "}, [], CheckoutSettings()),
        (MODULES, [], CheckoutSettings(submodules=True)),
        (MODULES, [workflow()], CheckoutSettings(submodules=True)),
        (MODULES, [workflow(submodules="true")], CheckoutSettings(submodules=True)),
        (MODULES, ["a: ["], CheckoutSettings(submodules=True)),
        (
            MODULES,
            [workflow(submodules="true"), workflow(submodules="'Recursive'")],
            CheckoutSettings(submodules=RECURSIVE),
        ),
        (LFS, [], CheckoutSettings(lfs=True)),
        ({**MODULES, **LFS}, [], CheckoutSettings(submodules=True, lfs=True)),
    ],
)
def test_what_is_proposed(
    files: dict[str, str], workflows: list[str], expected: CheckoutSettings
) -> None:
    texts = {f".github/workflows/{at}.yml": text for at, text in enumerate(workflows)}
    jobs = jobs_of(RepositoryFiles(frozenset(texts), texts), Machine())
    found = propose_checkout(files, jobs)
    assert found == expected
    text = "\n".join([*checkout_lines(found), ""]) or "{}\n"
    assert load_policy(text.encode(), {}, "policy").checkout == expected


def test_the_defaults_need_no_lines() -> None:
    assert checkout_lines(CheckoutSettings()) == []
