"""What goes wrong, by whose mistake it is."""


class Error(Exception):
    """Anything that this package raises of its own."""


class DatabaseError(Error):
    """A database that is not there, is no database of petlab, or cannot be read."""


class QuestionError(Error, ValueError):
    """A question with an unknown word, a value of another type, or no such trial."""


class ProgramError(Error):
    """The program petlab, which some questions need, is not there or could not answer."""


class WorkerError(Error):
    """A worker's files that cannot be read or written, or events in a wrong order."""


class TrialFailed(Error):
    """Raised in a training function: the trial is over, without a result.

    `kind` is `error`, `out_of_memory`, `not_finite` or `device`
    (docs/reference/worker-protocol.md); `device` also ends the worker.
    """

    def __init__(self, reason: str, kind: str = "error") -> None:
        super().__init__(reason)
        self.reason = reason
        self.kind = kind


class Stopped(BaseException):
    """Raised by Trial.checkpoint and Trial.stop_if_asked when petlab asked the worker to stop.

    Worker.run catches it. It is no Exception, so that `except Exception` in a training function
    does not keep a worker from stopping.
    """
