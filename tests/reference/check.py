"""check.py - runs the functions test_* of a script and prints the closing line. A test fails by an exception."""
import sys
import time
import traceback


def main(names):
    passed = failed = 0
    for name, test in names.items():
        if name.startswith("test_"):
            start = time.monotonic()
            try:
                note = test() or ""
                passed += 1
                print(f"ok      {name} {note} ({time.monotonic() - start:.1f} s)", flush=True)
            except Exception:
                failed += 1
                traceback.print_exc()
                print(f"FAILED  {name}", flush=True)
    print(f"{passed} passed, {failed} failed")
    sys.exit(failed > 0)
