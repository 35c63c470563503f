"""Which labels an issue template puts on."""

import pytest

from mulligan.daemon.doctor import labels_put_on

pytestmark = pytest.mark.pure


@pytest.mark.parametrize(
    ("template", "labels"),
    [
        (b"name: Bug\nlabels: [bug, mulligan]\nbody: []\n", ("bug", "mulligan")),
        (b"---\nname: Bug\nlabels: bug, mulligan\n---\n# What is wrong\n", ("bug", "mulligan")),
        (b"---\r\nlabels: mulligan\r\n---\r\nText: yes\r\n", ("mulligan",)),
        (b"---\nname: Bug\n---\nlabels: mulligan\n", ()),
        (b"name: Bug\n", ()),
        (b"name: [Bug\n", ()),
        (b"just words", ()),
        (b"labels: {a: b}\n", ()),
        (b"\xff\xfe\x00", ()),
        (b"", ()),
    ],
)
def test_labels_are_read_from_forms_and_front_matter(
    template: bytes, labels: tuple[str, ...]
) -> None:
    assert labels_put_on(template) == labels
