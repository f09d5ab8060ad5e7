"""The package's version: package.xml and setup.py say the same, a test compares them."""

__version__ = "0.1.0"
