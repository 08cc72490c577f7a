"""``python -m audits`` is ``dpledger``."""

from audits.cli import main

main()
