"""Java: Maven and Gradle, by their wrappers where those are there. Pure."""

from mulligan.starter.proposal import Proposal, suite
from mulligan.starter.tree import Tree


def propose(tree: Tree) -> Proposal | None:
    """Propose the tests; both tools fetch what they need while they run, so with the network."""
    if "pom.xml" in tree.paths:
        program = "./mvnw" if "mvnw" in tree.paths else "mvn"
        goal = "verify" if tree.in_ci(r"(?:\./mvnw|mvn)\b.* verify\b.*") else "test"
        check = suite(f"{program} -B -ntp {goal}", "pom.xml", network=True)
        return Proposal("Maven", (), (check,))
    if tree.has("build.gradle", "build.gradle.kts"):
        program = "./gradlew" if "gradlew" in tree.paths else "gradle"
        goal = "check" if tree.in_ci(r"(?:\./gradlew|gradle)\b.* check\b.*") else "test"
        source = tree.first("build.gradle", "build.gradle.kts") or ""
        check = suite(f"{program} --no-daemon --console=plain {goal}", source, network=True)
        return Proposal("Gradle", (), (check,))
    return None
