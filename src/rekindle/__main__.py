"""`python -m rekindle`."""

from rekindle.cli import main

main()
