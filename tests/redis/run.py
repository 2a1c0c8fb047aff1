"""Runs tests/redis: python run.py BUILD [NAME...], NAME as of unittest (test_cuts.Cuts)."""
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
names = sys.argv[2:]
loader = unittest.TestLoader()
found = loader.loadTestsFromNames(names) if names else loader.discover(os.path.dirname(os.path.abspath(__file__)))
sys.exit(not unittest.TextTestRunner(verbosity=2).run(found).wasSuccessful())
