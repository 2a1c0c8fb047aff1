"""given and st of hypothesis; where that is not installed, tests that use them are skipped."""
import pytest

try:
    from hypothesis import given
    from hypothesis import strategies as st
except ImportError:

    class Strategies:
        """Stands in for the strategies of tests that are skipped."""

        def __getattr__(self, name):
            return lambda *arguments, **options: self

    st = Strategies()

    def given(*arguments, **options):
        def skipped():
            pytest.skip("needs hypothesis")

        return lambda test: skipped
