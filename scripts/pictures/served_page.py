#!/usr/bin/env python3
"""Draws the page of `petlab serve quickstart` as page-light.png and page-dark.png.

usage: served_page.py FOLDER_OF_PROGRAMS QUICKSTART_DATABASE FOLDER_OF_PICTURES

Chromium takes the screenshots, from the top of the page to the end of its first figure. The
database is only read.
"""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys

from playwright.sync_api import sync_playwright

WIDTH = 1140  # CSS pixels; the table fits without scrolling
SCALE = 1.5  # picture pixels per CSS pixel
BELOW = 28  # CSS pixels under the figure; its next line fits in


def take(address: str, folder: str) -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"),
            args=["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
        )
        for scheme in ("light", "dark"):
            context = browser.new_context(
                viewport={"width": WIDTH, "height": 1200},
                device_scale_factor=SCALE,
                color_scheme=scheme,
                locale="en-GB",
                timezone_id="UTC",
            )
            page = context.new_page()
            page.goto(address)
            page.wait_for_selector(".plot[data-drawn]")
            page.wait_for_selector("#live-state[data-kind=live]")
            figure = page.locator(".plot[data-drawn]").first.bounding_box()
            height = figure["y"] + figure["height"] + BELOW
            page.screenshot(
                path=f"{folder}/page-{scheme}.png",
                full_page=True,
                animations="disabled",
                clip={"x": 0, "y": 0, "width": WIDTH, "height": height},
            )
        browser.close()


def main() -> None:
    programs, database, folder = sys.argv[1:]
    served = subprocess.Popen(
        [f"{programs}/petlab", "serve", "quickstart", "--db", database, "--port", "0"],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        for line in served.stdout:
            if address := re.search(r"http://\S+", line):
                take(address[0], folder)
                return
        sys.exit("served_page.py: petlab serve printed no address")
    finally:
        served.send_signal(signal.SIGINT)
        served.wait()


if __name__ == "__main__":
    main()
