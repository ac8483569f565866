"""One clock for all tests: what audits write is then the same whenever they run."""

import os

os.environ.setdefault("SOURCE_DATE_EPOCH", "1700000000")
