"""A browser with the letters of one font, whatever other fonts the machine has: pages must hold with any.

Fontconfig is told of one folder only, so that a page gets the same letters everywhere.
"""
import contextlib
import os
import pathlib
import shutil
import sys
import tempfile

# The family of each, and where its package puts it. DejaVu Sans is wide; Noto Sans is narrow and has high lines.
FONTS = {"DejaVu Sans": "/usr/share/fonts/truetype/dejavu", "Noto Sans": "/usr/share/fonts/truetype/noto"}

CONFIGURATION = """<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig><dir>{folder}</dir><cachedir>{cache}</cachedir>
<match><edit name="family" mode="append_last" binding="same"><string>{family}</string></edit></match></fontconfig>
"""


def used(browser):
    """The family that a browser takes for letters of no family in particular."""
    page = browser.new_page()
    page.set_content("<p style='font-family: system-ui, sans-serif'>Letters</p>")
    session = page.context.new_cdp_session(page)
    session.send("DOM.enable")
    session.send("CSS.enable")
    root = session.send("DOM.getDocument")["root"]["nodeId"]
    node = session.send("DOM.querySelector", {"nodeId": root, "selector": "p"})["nodeId"]
    fonts = session.send("CSS.getPlatformFontsForNode", {"nodeId": node})["fonts"]
    page.close()
    return [font["familyName"] for font in fonts]


@contextlib.contextmanager
def browser_with(playwright, family):
    """A browser whose letters are those of a family of FONTS."""
    chromium = shutil.which("chromium")
    if not chromium or not os.path.isdir(FONTS[family]):
        sys.exit(f"there is no {family if chromium else 'chromium'}: `make deps` installs it")
    with tempfile.TemporaryDirectory() as folder:
        configuration = pathlib.Path(folder, "fonts.conf")
        configuration.write_text(CONFIGURATION.format(folder=FONTS[family], cache=folder, family=family), encoding="utf-8")
        browser = playwright.chromium.launch(executable_path=chromium, chromium_sandbox=os.getuid() != 0,
                                             env={**os.environ, "FONTCONFIG_FILE": str(configuration)})
        try:
            if used(browser) != [family]:
                sys.exit(f"the browser takes {used(browser)}, not {family}")
            yield browser
        finally:
            browser.close()
