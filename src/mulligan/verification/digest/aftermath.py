"""What tools say after a failure and because of it: true, but not what has to be mended. Pure."""

import re

OPENINGS = (
    r"g?make(?:\[\d+\])?: (?:\*\*\* \[.*\] (?:Error|Segm|Killed|Abort)|Target)",
    r"npm (?:ERR!|error)",
    r"error Command failed",
    r"error: (?:aborting due to|could not compile|(?:doc)?test failed|recipe|build failed)",
    r"error: \d+ targets? failed",
    r"error: process didn't exit",
    r"ERROR: InvocationError",
    r".{0,60}?\b(?:exited|failed|terminated|completed) with (?:exit )?(?:code|status)",
    r"exit status \d+$",
    r"BUILD FAILED",
    r"FAILURE: Build failed",
    r"> Task \S+ FAILED",
    r"\* What went wrong",
    r"Result: FAIL",
    r"\*\* (?:TEST|BUILD) FAILED \*\*",
    r"failing tests:?$",
    r"SUMMARY: \w+Sanitizer",
    r"ninja: build stopped",
    r"collect2:",
    r"ELIFECYCLE",
    r"FAIL\t",
    r"FAIL$",
    r"FAIL +\S+\.\w+$",
    r"FAILED \(",
    r"The following tests FAILED",
    r"Errors? (?:while running|was found)",
    r"(?:\d+|one|some) (?:errors?|warnings?|tests?) (?:generated|failed|emitted|found)",
    r"some errors have detailed",
    r"for more information about this error",
    r"(?:\[ERROR\] ?)+(?:Failed to execute goal|COMPILATION ERROR|Failures:|Errors:|To see the)",
    r"(?:\[ERROR\] ?)+(?:Re-run Maven|For more information|After correcting|Please refer|\[Help|$)",
)
ANYWHERE = (
    r"due to (?:\d+ )?previous errors?",
    r"compilation terminated",
    r"Stopping at filesystem",
    r"-> \[Help \d\]$",
)
AFTERMATH = re.compile(
    "|".join([rf"^(?:\[\w+\]\s*)?\W{{0,20}}(?:{'|'.join(OPENINGS)})", *ANYWHERE]), re.IGNORECASE
)


def is_aftermath(line: str) -> bool:
    """Tell whether a line only says that something failed before."""
    return bool(AFTERMATH.search(line))
