"""The exceptions of this package."""


class Error(Exception):
    """The base class of this package's exceptions."""


class DatabaseError(Error):
    """The database is missing, unreadable, or not a petlab database."""


class QuestionError(Error, ValueError):
    """A query has an unknown word, a value of the wrong type, or an unknown trial."""


class ProgramError(Error):
    """The program petlab, which most queries need, is missing or failed."""


class WorkerError(Error):
    """A worker's files cannot be read or written, or its events are in the wrong order."""


class TrialFailed(Error):
    """Raised in a training function to end the trial without a result.

    `kind` is `error`, `out_of_memory`, `not_finite`, `device` or `gang`
    (docs/reference/worker-protocol.md); `device` also ends the worker.
    """

    def __init__(self, reason: str, kind: str = "error") -> None:
        super().__init__(reason)
        self.reason = reason
        self.kind = kind


class Stopped(BaseException):
    """Raised by Trial.checkpoint and Trial.stop_if_asked when petlab asked to stop.

    Worker.run catches it. It is not an Exception, so `except Exception` in a training function
    does not prevent a worker from stopping.
    """
