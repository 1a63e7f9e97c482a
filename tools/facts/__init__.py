"""Programs that run the tools of other people on made shapes, and keep what these paint as facts for our tests.

Each runs in an environment that has segpack and the tool; `requirements.txt` has the versions. The tests read the
facts from tests/facts, so they need no such tool.
"""
