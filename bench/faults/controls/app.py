"""Runs `slotlock` without the guard that FAULTS_CONTROL names."""

import os
import sys

from bench.faults.controls.guards import CONTROLS
from slotlock.cli.main import main

CONTROLS[os.environ["FAULTS_CONTROL"]]()
sys.exit(main(sys.argv[1:]))
