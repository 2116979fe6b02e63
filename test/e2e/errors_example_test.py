"""examples/errors: the details that its server packs are those that its client reads."""
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["TORC_SOURCE_DIR"], "test"))
from support.kit import BUILD, WAIT, check, main

SAID = """INVALID_ARGUMENT: the order is not valid
  address: must not be empty
  quantity: 0: expected 1 or more
  reason ORDER_INVALID of shop.example
RESOURCE_EXHAUSTED: sold out
  again in 1.5 s
"""


def test_details():
    done = subprocess.run([os.path.join(BUILD, "examples", "errors")], capture_output=True, text=True, timeout=WAIT, check=False)
    check(done.returncode == 0 and done.stdout == SAID, f"exit {done.returncode}\n{done.stdout}{done.stderr}")


main(test_details)
