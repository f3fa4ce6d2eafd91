"""petlab from Python: its results as data frames, and training scripts as its workers.

    import petlab
    petlab.open("ablation.db").results(metric="accuracy")

docs/python.md of the repository has examples of both.
"""

from .catalog import Catalog, DeclaredTask, Field, Kind, Metric
from .config import (
    Config,
    DataConfig,
    DecodingConfig,
    EvaluationConfig,
    ModuleConfig,
    TrainingConfig,
)
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
from .trial import Resume, Task, TaskFiles, Trial
from .worker import Worker

__version__ = "0.2.0"
__all__ = [
    "AttemptRecord",
    "Catalog",
    "Config",
    "DataConfig",
    "Database",
    "DatabaseError",
    "DeclaredTask",
    "DecodingConfig",
    "Error",
    "EvaluationConfig",
    "Field",
    "Kind",
    "Metric",
    "ModuleConfig",
    "NoteWarning",
    "ProgramError",
    "QuestionError",
    "Resume",
    "Stopped",
    "Task",
    "TaskFiles",
    "TrainingConfig",
    "Trial",
    "TrialFailed",
    "TrialRecord",
    "Worker",
    "WorkerError",
    "open",
]
