#!/usr/bin/env python3
"""Tests report pages in a real Chromium: drawing, mouse and keyboard, and their security policy.

usage: report_page.py FOLDER_OF_PROGRAMS
"""
import os
import pathlib
import shutil
import signal
import subprocess
import sys

import serving
import tiny_world
from scripted_world import WORKER, ScriptedWorld

SOURCE = pathlib.Path(__file__).resolve().parents[2]
SWEEP = """sweep: pages
base:
  backbone: ./tiny
  task: films.yaml
  module.kind: adapter
  training: {epochs: 3, batch_size: 12, learning_rate: 5e-3}
variants:
  small: {module.bottleneck: 4, user: {steps: 40, validate_every: 4}}
  middle: {module.bottleneck: 8, user: {steps: 40, validate_every: 4}}
  large: {module.bottleneck: 12, user: {steps: 40, validate_every: 4}}
  broken: {module.bottleneck: 6, user: {steps: 4, behaviour: crash, attempts: 9}}
grid:
  seed: [1, 2]
"""
EVIL = "<script>alert(1)</script>"
# A text that would be harmful as a Vega expression.
SIGNAL = "datum.constructor.constructor('alert(2)')()"
REPORT = """report: pages
about: "{evil} about"
where: {{split: test}}
sections:
  - table:
      key: scores
      title: Scores
      rows:
        - {{key: small, name: "{evil}", where: {{variant: small}}}}
        - {{key: middle, where: {{variant: middle}}}}
        - {{key: large, where: {{variant: large}}}}
        - {{key: broken, where: {{variant: broken}}}}
      columns:
        - {{key: size, value: module_bottleneck, digits: 0}}
        - {{key: score, where: {{name: score}}}}
        - {{key: text, text: "=cmd() | input"}}
  - figure:
      key: sizes
      title: "{signal}"
      x: {{value: module_bottleneck, name: "{signal}", log: true}}
      y: {{where: {{name: score}}, name: "{evil}"}}
      series:
        - {{key: one, name: "{signal}", where: {{variant: [small, middle]}}}}
        - {{key: two, name: "{evil}", where: {{variant: large}}}}
""".format(evil=EVIL, signal=SIGNAL)
PATIENCE = 60_000  # ms; rendering a page may take at most a tenth of the time, so updates can be rare
WIDE, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}


def real_home():
    data = os.environ.get("XDG_DATA_HOME") or pathlib.Path.home() / ".local/share"
    return pathlib.Path(os.environ.get("PETLAB_HOME") or pathlib.Path(data) / "petlab")


class ReportPage(ScriptedWorld):
    def setUp(self):
        super().setUp()
        self.write("sweep.yaml", SWEEP)
        self.write("pages.yaml", REPORT)
        (self.root / "home/venv").symlink_to(VENV)
        done = self.petlab("run", "sweep.yaml", "--slots", 2, "--retry-delay", "10ms", "--retries",
                           0, "--worker", WORKER)
        self.assertEqual(done.code, 1, done)  # because of the broken variant
        for folder in self.attempt_folders():
            lines = [f"line {line} of it" for line in range(1, 31)]
            (folder / "log.txt").write_text("\n".join([*lines, "\033[31mthe end"]) + "\n")
        self.render("pages.yaml")

    def render(self, report, *words):
        done = self.petlab("report", f"./{report}", "--db", "sweep.db", "--out", "out", "--format",
                           "html", *words)
        self.assertEqual((done.code, done.err), (0, ""), done)

    def open(self, viewport=WIDE, **options):
        """Opens the page without a network. Records its console messages and requested URLs."""
        browser = PLAYWRIGHT.chromium.launch(
            executable_path=shutil.which("chromium"),
            args=["--no-sandbox", "--disable-gpu", "--disable-background-networking",
                  "--no-first-run"])
        self.addCleanup(browser.close)
        context = browser.new_context(viewport=viewport, offline=True, **options)
        page = context.new_page()
        self.console_texts, self.requested_urls = [], []
        page.on("console", lambda message: self.console_texts.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: self.console_texts.append(f"error: {error}"))
        page.on("dialog", lambda dialog: (self.console_texts.append(f"dialog: {dialog.message}"),
                                          dialog.dismiss()))
        page.on("request", lambda request: self.requested_urls.append(request.url))
        page.goto((self.root / "out/pages.html").as_uri())
        page.wait_for_selector(".plot[data-drawn]")
        return page

    def assert_silent(self):
        """Checks that the page had no errors and made no requests except for itself."""
        self.assertEqual(self.console_texts, [])
        requests = [url for url in self.requested_urls if not url.startswith("data:,")]
        self.assertEqual(requests, [(self.root / "out/pages.html").as_uri()])

    def assert_rows(self, page, heads):
        """Waits until the page shows exactly these row headers."""
        expect(page.locator("#scores tbody tr:visible th[scope=row]")).to_have_text(heads)

    def assert_focused(self, page, id):
        expect(page.locator(f'[id="{id}"]')).to_be_focused()

    def test_a_page_has_no_errors_and_makes_no_requests(self):
        page = self.open()
        self.assertEqual(page.locator("h1").inner_text(), "pages")
        self.assertEqual(page.locator(".about").first.inner_text(), f"{EVIL} about")
        page.locator("#scores td.number").nth(1).hover()
        page.locator("#scores td.number").nth(1).click()
        page.keyboard.press("Escape")
        self.assert_silent()

    def test_figures_are_drawn_from_the_pages_data(self):
        page = self.open()
        marks = page.locator("#sizes .plot .mark-symbol.role-mark path")
        # Three sizes, without the legend's clickable area.
        self.assertEqual(marks.count(), 3)
        self.assertEqual(page.locator("#sizes .plot .mark-line.role-mark path").count(), 2)
        self.assertEqual(page.locator("#sizes .plot .mark-rule.role-mark line").count(), 3)
        texts = page.locator("#sizes .plot text").all_text_contents()
        for text in (EVIL, SIGNAL):
            self.assertTrue(any(shown.startswith(text[:12]) for shown in texts), texts)
        marks.first.hover()
        page.wait_for_selector("#vg-tooltip-element.visible")
        for words in ("measured", "± over seeds", SIGNAL[:12]):
            expect(page.locator("#vg-tooltip-element")).to_contain_text(words)
        # The legend filters: the other curve fades.
        page.locator("#sizes .plot .role-legend-symbol path").first.click()
        page.wait_for_function("""() => [...document.querySelectorAll(
            '#sizes .mark-symbol.role-mark path')].some((mark) =>
                Number(mark.getAttribute('opacity')) < 0.5)""")
        self.assert_silent()

    def test_a_figure_adapts_to_the_available_width(self):
        page = self.open()
        width = "Number(document.querySelector('#sizes .plot svg').getAttribute('width'))"
        first = page.evaluate(width)
        for narrow in (PHONE, {"width": 700, "height": 900}):
            page.set_viewport_size(narrow)
            page.wait_for_function(f"() => {width} <= {narrow['width']}")
        page.set_viewport_size(WIDE)
        page.wait_for_function(f"() => {width} == {first}", timeout=PATIENCE)
        self.assert_silent()

    def test_a_table_shows_that_it_can_be_scrolled(self):
        page = self.open({"width": 390, "height": 844})
        scroll = page.locator("div.scroll", has=page.locator('[aria-label="Scores"]'))
        expect(scroll).to_have_class("scroll more")
        scroll.evaluate("(one) => { one.scrollLeft = one.scrollWidth; }")
        expect(scroll).to_have_class("scroll")
        page.set_viewport_size(WIDE)
        expect(scroll).to_have_class("scroll")
        self.assert_silent()

    def test_a_table_is_sorted_filtered_and_its_columns_hidden(self):
        page = self.open()
        planned = [EVIL, "middle", "large", "broken"]
        self.assert_rows(page, planned)
        size = page.get_by_role("button", name="size", exact=True)
        size.click()
        self.assert_rows(page, ["large", "middle", "broken", EVIL])
        sorted_by = page.locator("#scores thead th")
        expect(sorted_by.nth(1)).to_have_attribute("aria-sort", "descending")
        size.click()
        self.assert_rows(page, [EVIL, "broken", "middle", "large"])
        size.click()
        self.assert_rows(page, planned)
        # Rows without a value are last in both orders.
        score = page.get_by_role("button", name="score", exact=True)
        for direction in ("descending", "ascending"):
            score.click()
            expect(sorted_by.nth(2)).to_have_attribute("aria-sort", direction)
            expect(page.locator("#scores tbody tr").last).to_contain_text("broken")
        score.click()
        filtering = page.get_by_role("searchbox", name="Filter the rows of Scores")
        filtering.fill("MID cmd")
        self.assert_rows(page, ["middle"])
        expect(page.locator("#scores output")).to_have_text("1 of 4 rows")
        filtering.fill("no such row")
        self.assert_rows(page, [])
        filtering.fill("")
        self.assert_rows(page, planned)
        page.locator("#scores .columns summary").click()
        page.get_by_role("checkbox", name="size").uncheck()
        expect(page.locator("#scores td:visible")).to_have_count(4 * 2)
        expect(size).to_be_hidden()
        page.get_by_role("checkbox", name="size").check()
        expect(page.locator("#scores td:visible")).to_have_count(4 * 3)
        self.assert_silent()

    def test_a_cell_shows_its_trials(self):
        page = self.open()
        page.locator('[id="scores/middle/score"]').click()
        dialog = page.get_by_role("dialog", name="middle · score")
        dialog.wait_for()
        ids = [row["trial_id"] for row in self.query(
            "SELECT DISTINCT trial_id FROM sweep_results WHERE variant = 'middle' ORDER BY seed")]
        expect(dialog.locator("summary code")).to_have_text(ids)
        dialog.locator("summary").first.click()
        opened = dialog.locator("details.trial").first
        for words in ("pages: middle", f"petlab show {ids[0]}", "finished", "scripted-worker 1",
                      "module_bottleneck", "training_learning_rate"):
            expect(opened).to_contain_text(words)
        # Its trials differ only in the seed.
        expect(opened.locator("dt.differs")).to_have_text(["seed"])
        # The chart has one line for each trial over its validated steps.
        page.wait_for_selector("dialog .plot[data-drawn]")
        expect(dialog.locator("select")).to_have_value("validation films accuracy")
        marks = dialog.locator(".plot .mark-symbol.role-mark path")
        expect(marks).to_have_count(2 * 10)
        dialog.locator("select").select_option("train films loss")
        expect(marks).to_have_count(2 * 40)
        page.get_by_role("button", name="Close").click()
        expect(dialog).to_be_hidden()
        # A failed trial has its reason and the last lines of its log.
        page.locator('[id="scores/broken/score"]').click()
        failed = page.get_by_role("dialog", name="broken · score")
        failed.locator("summary").first.click()
        for words in ("crashed", "failed", "ended with signal 6 (Aborted)", "line 20 of it",
                      "line 30 of it", "\N{REPLACEMENT CHARACTER}[31mthe end"):
            expect(failed).to_contain_text(words)
        self.assertNotIn("line 19 of it", failed.inner_text())
        # A click outside the dialog closes it.
        page.mouse.click(5, 5)
        expect(failed).to_be_hidden()
        self.assert_silent()

    def test_a_diagram_of_ranks_fits_wide_pages_and_phones(self):
        self.write("pages.yaml", f"""report: pages
where: {{split: test, name: score}}
ranks:
  title: "{EVIL}"
  variants:
    - {{key: small, name: "{EVIL}", where: {{variant: small}}}}
    - {{key: middle, name: middle of three, where: {{variant: middle}}}}
    - {{key: large, where: {{variant: large}}}}
  tasks:
    - {{key: first, where: {{seed: 1}}, better: higher}}
    - {{key: second, where: {{seed: 2}}, better: higher}}
""")
        self.render("pages.yaml")
        for viewport in (WIDE, PHONE):
            page = self.open(viewport)
            for name in (EVIL, "middle of three", "large"):
                expect(page.locator("#pages .plot text", has_text=name)).to_have_count(1)
            drawn = page.locator("#pages .plot svg").bounding_box()
            self.assertLess(drawn["height"], 200)
            self.assertLessEqual(drawn["width"], viewport["width"] + 200)
            page.locator("#pages details summary").first.click()
            page.locator('[id="pages/large/average_rank"]').click()
            page.get_by_role("dialog", name="large · average rank").wait_for()
            self.assert_silent()

    def test_everything_can_be_reached_by_keyboard(self):
        page = self.open()
        for _ in range(40):
            page.keyboard.press("Tab")
            if page.evaluate("document.activeElement.tagName") == "TD":
                break
        self.assert_focused(page, "scores/small/size")
        expect(page.locator("#tip")).to_be_visible()
        for key, at in (("ArrowRight", "small/score"), ("ArrowDown", "middle/score"),
                        ("End", "middle/text"), ("Home", "middle/size"), ("ArrowLeft", "middle/size"),
                        ("ArrowRight", "middle/score")):
            page.keyboard.press(key)
            self.assert_focused(page, f"scores/{at}")
        page.keyboard.press("Enter")
        dialog = page.get_by_role("dialog", name="middle · score")
        dialog.wait_for()
        expect(page.locator("#tip")).to_be_hidden()
        # Tab stays inside the dialog, and Enter opens a trial.
        for _ in range(10):
            page.keyboard.press("Tab")
            if page.evaluate("document.activeElement.tagName") == "SUMMARY":
                break
        page.keyboard.press("Enter")
        dialog.get_by_text("Configuration").first.wait_for()
        page.keyboard.press("Escape")
        expect(dialog).to_be_hidden()
        self.assert_focused(page, "scores/middle/score")
        # A table is a single tab stop. Up from the first row leads to the column's button.
        page.keyboard.press("ArrowUp")
        page.keyboard.press("ArrowUp")
        expect(page.get_by_role("button", name="score", exact=True)).to_be_focused()
        page.keyboard.press("Enter")
        expect(page.locator("#scores thead th").nth(2)).to_have_attribute("aria-sort", "descending")
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Tab")
        self.assertNotEqual(page.evaluate("document.activeElement.tagName"), "TD")
        self.assert_silent()

    def test_no_rule_of_accessibility_is_broken(self):
        for viewport in (WIDE, PHONE):
            for scheme in ("light", "dark"):
                page = self.open(viewport, color_scheme=scheme)
                page.evaluate(AXE)
                page.locator("#sizes details summary").click()
                for state in ("page", "columns", "dialog"):
                    if state == "columns":
                        page.locator("#scores .columns summary").click()
                    if state == "dialog":
                        page.locator("#scores .columns summary").click()
                        page.locator('[id="scores/broken/score"]').click()
                        page.locator("dialog summary").first.click()
                        page.get_by_text("Configuration").first.wait_for()
                    found = page.evaluate("axe.run().then((result) => result.violations.map("
                                          "(one) => [one.id, one.nodes.map((node) => node.html)]))")
                    self.assertEqual(found, [], f"{viewport['width']} {scheme} {state}")
                # Nothing is wider than the screen, except parts that scroll.
                self.assertLessEqual(page.evaluate("document.documentElement.scrollWidth"),
                                     viewport["width"])

    def test_the_policy_blocks_all_other_scripts(self):
        page = self.open()
        with page.expect_console_message(lambda message: "Content Security Policy" in message.text):
            self.assertEqual(page.evaluate("""() => {
                const script = document.createElement("script");
                script.textContent = "window.ran = true";
                document.body.append(script);
                return window.ran === undefined;
            }"""), True)
        policy = page.locator("meta[http-equiv]").get_attribute("content")
        self.assertIn("default-src 'none'", policy)
        for word in ("unsafe-eval", "script-src 'unsafe-inline'", "http"):
            self.assertNotIn(word, policy)

    def test_a_printed_page_is_laid_out_for_paper(self):
        page = self.open(color_scheme="dark")
        page.emulate_media(media="print", color_scheme="dark")
        expect(page.locator(".tools").first).to_be_hidden()
        colours = page.evaluate("""() => [document.body, document.querySelector(".plot text")].map(
            (one) => [getComputedStyle(one).backgroundColor, getComputedStyle(one).fill])""")
        self.assertEqual(colours[0][0], "rgb(255, 255, 255)")
        self.assertEqual(colours[1][1], "rgb(0, 0, 0)")

    def test_a_page_is_complete_without_its_script(self):
        page = self.open_without_script()
        self.assertEqual(page.locator("#scores tbody tr").count(), 4)
        self.assertEqual(page.locator("#sizes tbody tr").count(), 3)

    def open_without_script(self):
        browser = PLAYWRIGHT.chromium.launch(executable_path=shutil.which("chromium"),
                                             args=["--no-sandbox", "--disable-gpu"])
        self.addCleanup(browser.close)
        page = browser.new_context(java_script_enabled=False).new_page()
        page.goto((self.root / "out/pages.html").as_uri())
        return page


class LivePage(ScriptedWorld):
    """petlab serve in two browsers while a sweep runs."""

    serve = serving.Serving.serve

    def open(self, address):
        """Opens another browser. Records the page's console messages and requested URLs in the page."""
        browser = PLAYWRIGHT.chromium.launch(
            executable_path=shutil.which("chromium"),
            args=["--no-sandbox", "--disable-gpu", "--disable-background-networking",
                  "--no-first-run"])
        self.addCleanup(browser.close)
        page = browser.new_context(viewport=WIDE).new_page()
        page.console_texts, page.requested_urls = [], []
        page.on("console", lambda message: page.console_texts.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: page.console_texts.append(f"error: {error}"))
        page.on("request", lambda request: page.requested_urls.append(request.url))
        page.goto(address)
        # A reload would remove this.
        page.evaluate("window.stays = true")
        return page

    def scores_of(self, page, variant):
        row = page.locator("#scripted tbody tr").filter(
            has=page.get_by_role("rowheader", name=variant, exact=True))
        return row.locator("td.number[data-value]")

    def test_two_browsers_show_updates_and_the_end_of_the_server(self):
        gate = self.root / "gate"
        self.write_sweep({"steps": 3}, {"steps": 40, "gate": str(gate), "checkpoint_every": 30})
        run = self.start_scripted()
        self.until(lambda: (self.root / "sweep.db").exists() and
                   self.query("SELECT step FROM progress WHERE step >= 30") and
                   self.outcomes().get("finished") == 1)
        second = self.query("SELECT trial_id FROM "
                            "trials WHERE result_attempt IS NULL")[0]["trial_id"]
        server = self.serve()
        address = f"http://127.0.0.1:{server.port}/"
        pages = [self.open(address) for _ in range(2)]
        for page in pages:
            expect(page.locator("#live-state")).to_contain_text("live, as of", timeout=PATIENCE)
            expect(page.locator("#live-now")).to_contain_text(second[:8], timeout=PATIENCE)
            expect(page.locator("#live-now progress")).to_have_attribute("value", "30")
            expect(page.locator("ul.progress")).to_contain_text("1 of 2 trials done",
                                                                timeout=PATIENCE)
            # A pending trial has a size, but no score yet.
            expect(self.scores_of(page, "v1")).not_to_have_count(1)
            expect(self.scores_of(page, "v2")).to_have_count(1)
        # Open parts and filters stay across updates.
        first = pages[0]
        first.locator("#scripted .columns summary").click()
        filtering = first.get_by_role("searchbox")
        filtering.fill("v2")
        gate.touch()
        self.assertEqual(self.end(run).code, 0)
        for page in pages:
            expect(page.locator("#live-now")).to_contain_text("Nothing runs now.", timeout=PATIENCE)
            expect(page.locator("ul.progress")).to_contain_text("2 of 2 trials done",
                                                                timeout=PATIENCE)
            expect(self.scores_of(page, "v2")).not_to_have_count(1)
        expect(first.locator("#scripted .columns")).to_have_attribute("open", "")
        expect(filtering).to_have_value("v2")
        expect(first.locator("#scripted tbody tr:visible")).to_have_count(1)
        self.scores_of(first, "v2").first.click()
        dialog = first.get_by_role("dialog")
        expect(dialog).to_contain_text(second)
        first.keyboard.press("Escape")
        for page in pages:
            self.assertEqual(page.console_texts, [])
        server.send_signal(signal.SIGINT)
        self.assertEqual(self.end(server).code, 0)
        for page in pages:
            expect(page.locator("#live-state")).to_contain_text(
                "The server does not answer; shown as of", timeout=PATIENCE)
            expect(page.locator("ul.progress")).to_contain_text("2 of 2 trials done")
        self.serve("--port", server.port)
        for page in pages:
            expect(page.locator("#live-state")).to_contain_text("live, as of", timeout=PATIENCE)
            self.assertTrue(page.evaluate("window.stays"))
            for line in page.console_texts:  # only errors about the lost connection
                self.assertRegex(line, r"^error: Failed to load resource: net::ERR_")
            self.assertEqual([url for url in page.requested_urls
                              if not url.startswith(address) and not url.startswith("data:,")], [])


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


if __name__ == "__main__":
    there = subprocess.run([SOURCE / "scripts/browser_venv.sh", "--there"], stdout=subprocess.PIPE,
                           text=True)
    if there.returncode != 0:
        skip("Chromium, or what drives it, is not there; scripts/setup.sh --dev installs both")
    python = there.stdout.strip()
    if not os.path.samefile(os.path.dirname(os.path.dirname(python)), sys.prefix):
        os.execv(python, [python, *sys.argv])
    VENV = real_home() / "venv"
    if not list(VENV.glob("lib/python3*/site-packages/vl_convert")):
        skip(f"vl-convert-python is not in {VENV}; scripts/setup.sh installs it")
    import axe_playwright_python
    from playwright.sync_api import expect, sync_playwright
    AXE = (pathlib.Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text()
    with sync_playwright() as PLAYWRIGHT:
        tiny_world.main()
