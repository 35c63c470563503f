"""Why a server gave no answer, in plain words; the libraries' own are for their makers. Pure."""

from requests import Timeout
from requests.exceptions import SSLError
from urllib3.exceptions import HTTPError
from urllib3.exceptions import TimeoutError as SocketTimeout

from mulligan.github.connection import OddAnswerError


def reason_of(error: Exception) -> str:
    """Say why there was no answer."""
    match error:
        case Timeout() | SocketTimeout():
            return "it took too long"
        case SSLError():
            return "its certificate is not trusted on this machine"
        case OddAnswerError():
            return str(error)
        case OSError() | HTTPError() if is_refused(error):
            return "nothing listens there"
        case OSError() | HTTPError():
            return "the connection could not be made, or broke off"
        case _:
            return f"its answer could not be read ({type(error).__name__})"


def is_refused(error: BaseException | None) -> bool:
    """Tell whether the machine answered that no program listens on that port."""
    while error and not isinstance(error, ConnectionRefusedError):
        error = error.__cause__ or error.__context__
    return error is not None
