"""An agent as a workflow of DBOS: kill this server in the middle of a run, start it again, and the run goes on.

DBOS knows which steps are done, the server's log what clients saw; a step that was killed in between is done again and
nothing of it comes twice.

pip install 'reattach[dbos]'
python examples/12_dbos_engine.py &
python examples/01_first_program.py      # follows a run; kill -9 either of the two, and start it again
"""

import sys
from pathlib import Path

from paying_agent import AGENT, serve

from reattach_mockserver.engines.dbos import DbosEngine

PORT = int(sys.argv[1]) if len(sys.argv) > 1 else 8700
FOLDER = Path(sys.argv[2]) if len(sys.argv) > 2 else Path()

serve(DbosEngine(AGENT, FOLDER / "workflows.db"), PORT, FOLDER)
