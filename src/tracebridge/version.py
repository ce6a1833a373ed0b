"""The version of the package, where every layer can see it."""

__version__ = "0.1.0"
