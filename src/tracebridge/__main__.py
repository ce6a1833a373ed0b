"""``python -m tracebridge``."""

from tracebridge.cli import main

if __name__ == "__main__":
    main()
