"""`python -m headgate.execution.notebooks.program JOB`: run the notebook that a file describes."""

import json
import sys
from pathlib import Path

from headgate.execution.notebooks.program.runner import run

if __name__ == "__main__":
    run(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))
