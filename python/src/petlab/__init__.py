"""petlab from Python: its results as data frames.

    import petlab
    petlab.open("ablation.db").results(metric="accuracy")

docs/python.md of the repository has examples.
"""

from .config import Config, DataConfig, ModuleConfig, TrainingConfig
from .database import AttemptRecord, Database, NoteWarning, TrialRecord, open
from .errors import (
    DatabaseError,
    Error,
    ProgramError,
    QuestionError,
    Stopped,
    TrialFailed,
    WorkerError,
)

__version__ = "0.1.0"
__all__ = [
    "AttemptRecord",
    "Config",
    "DataConfig",
    "Database",
    "DatabaseError",
    "Error",
    "ModuleConfig",
    "NoteWarning",
    "ProgramError",
    "QuestionError",
    "Stopped",
    "TrainingConfig",
    "TrialFailed",
    "TrialRecord",
    "WorkerError",
    "open",
]
