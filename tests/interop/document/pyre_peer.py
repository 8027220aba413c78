"""A ZRE peer under the name `X-TEST` for a while: started with the Python of its own environment."""

import sys
import time

import pyre

node = pyre.Pyre("ZRE peer")
node.set_header("X-TEST", "1")
node.start()
node.join("foreign")
time.sleep(float(sys.argv[1]))  # tidy: it takes part for so long, and does nothing itself
node.stop()
