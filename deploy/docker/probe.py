"""Whether the services of this container are ready: the image has no curl."""

import os
import sys
from urllib.error import URLError
from urllib.request import urlopen

TIMEOUT_S = 3.0

try:
    urlopen(f"http://127.0.0.1:{os.environ['WAYLINE_HEALTH_PORT']}/health/ready", timeout=TIMEOUT_S).close()
except (URLError, OSError) as error:
    sys.exit(f"not ready: {error}")
