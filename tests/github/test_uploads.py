"""Only what people uploaded to this GitHub is an attachment (TRUST-6)."""

import pytest

from mulligan.github.uploads import Uploads

pytestmark = pytest.mark.pure

ID = "880fbe21-506b-458b-8be6-71ac826d92f5"
GITHUB = "https://api.github.com"
SERVER = "https://git.example.com/api/v3"
CLOUD = "https://api.octo.ghe.com"


@pytest.mark.parametrize(
    ("api_url", "address"),
    [
        (GITHUB, f"https://github.com/user-attachments/assets/{ID}"),
        (GITHUB, "https://github.com/user-attachments/files/123/a.b-c.log"),
        (GITHUB, f"https://github.com/octo.cat/hello-world/assets/14/{ID}"),
        (GITHUB, "https://github.com/octocat/hello-world/files/123/log%20file.txt"),
        (GITHUB, f"https://user-images.githubusercontent.com/1/2-{ID}.png"),
        (GITHUB, f"https://private-user-images.githubusercontent.com/1/2-{ID}.png?jwt=a.b#c"),
        (SERVER, f"https://git.example.com/user-attachments/assets/{ID}"),
        (SERVER, f"https://git.example.com/storage/user/4/files/{ID}?token=A"),
        (SERVER, f"https://media.git.example.com/user/4/files/{ID}?token=A"),
        (CLOUD, f"https://octo.ghe.com/user-attachments/assets/{ID}"),
        (CLOUD, f"https://private-user-images.octo.ghe.com/1/2-{ID}.png?jwt=a"),
        ("http://localhost:4901", f"http://localhost:4901/storage/user/1/files/{ID}"),
    ],
)
def test_an_upload_is_known_by_its_address(api_url: str, address: str) -> None:
    assert Uploads.of(api_url).has(address)


@pytest.mark.parametrize(
    "address",
    [
        "",
        "https://[::1/a",
        "https://camo.githubusercontent.com/0a1b/68747470",
        "https://raw.githubusercontent.com/octocat/hello-world/main/a.png",
        "https://github.com/octocat/hello-world/raw/main/a.png",
        "https://github.com/octocat/hello-world/blob/main/a.png?raw=true",
        f"https://github.com/user-attachments/assets/../../o/r/raw/main/{ID}",
        f"https://github.com/user-attachments/assets/{ID}/../a",
        f"https://github.com/../files/assets/1/{ID}",
        f"http://github.com/user-attachments/assets/{ID}",
        f"https://github.com:444/user-attachments/assets/{ID}",
        f"https://a@github.com/user-attachments/assets/{ID}",
        f"https://github.com.example.com/user-attachments/assets/{ID}",
        f"https://git.example.com/user-attachments/assets/{ID}",
        "https://github.com/user-attachments/assets/not-an-id",
        "https://github.com/o/r/files/1/a/../../../x",
    ],
)
def test_anything_else_is_none(address: str) -> None:
    assert not Uploads.of(GITHUB).has(address)


@pytest.mark.parametrize(
    "address",
    [
        f"https://github.com/user-attachments/assets/{ID}",
        f"https://user-images.githubusercontent.com/1/2-{ID}.png",
        f"https://raw.git.example.com/1/2-{ID}.png",
        f"https://pages.git.example.com/user/4/files/{ID}",
        f"https://api.git.example.com/user-attachments/assets/{ID}",
    ],
)
def test_another_github_is_not_this_one(address: str) -> None:
    assert not Uploads.of(SERVER).has(address)
