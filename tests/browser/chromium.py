"""A real Chromium for the tests of the console, and words to work with its pages."""
import os
import subprocess
import tempfile
from pathlib import Path

from selenium import webdriver
from selenium.common.exceptions import StaleElementReferenceException, WebDriverException
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from served import until

FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-dev-shm-usage",
         "--disable-background-networking", "--disable-component-update", "--disable-sync", "--window-size=1440,1000",
         "--force-color-profile=srgb", "--lang=en-US", "--force-prefers-reduced-motion"]
WAIT = float(os.environ.get("SLUICE_BROWSER_WAIT", "60"))
SHOTS = Path(os.environ.get("SLUICE_SCREENSHOTS", Path(os.environ["SLUICED"]).parent / "screenshots"))

# Runs before every page: counts what the policy refuses and what goes wrong in a script.
WATCH = """
window.__refused = [];
document.addEventListener('securitypolicyviolation', (e) => window.__refused.push(e.violatedDirective + ' ' + e.blockedURI));
window.__wrong = [];
addEventListener('error', (e) => window.__wrong.push(String(e.message)));
addEventListener('unhandledrejection', (e) => window.__wrong.push(String(e.reason && e.reason.stack || e.reason)));
"""


def axe_source():
    root = subprocess.run(["npm", "root", "--global"], capture_output=True, text=True, check=True).stdout.strip()
    return (Path(root) / "axe-core/axe.min.js").read_text()


class Chromium:
    def __init__(self):
        self.profile = tempfile.TemporaryDirectory()
        options = Options()
        options.binary_location = "/usr/bin/chromium"
        for flag in [*FLAGS, f"--user-data-dir={self.profile.name}"]:
            options.add_argument(flag)
        options.set_capability("acceptInsecureCerts", True)
        self.driver = webdriver.Chrome(service=Service("/usr/bin/chromedriver"), options=options)
        self.driver.set_script_timeout(60)
        self.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": WATCH})
        self.base = None
        self.axe = None

    def close(self):
        self.driver.quit()
        self.profile.cleanup()

    # --- pages ---------------------------------------------------------------

    def visit(self, base, hash="#/overview"):
        """Loads the console anew."""
        self.base = base
        self.driver.get("about:blank")
        self.driver.get(f"{base}console/{hash}")

    def go(self, hash):
        """Another page of the console; waits for its data."""
        self.run("location.hash = arguments[0]", hash)
        self.ready(hash)

    def ready(self, hash=None):
        self.until("const m = document.querySelector('main'); return m && m.dataset.ready === 'true' && m.dataset.at === location.hash"
                   " && (!arguments[0] || location.hash === arguments[0])", hash)

    def run(self, script, *args):
        return self.driver.execute_script(script, *args)

    def until(self, script, *args):
        def check():
            try:
                return self.run(script, *args)
            except WebDriverException as error:
                if "javascript error" in str(error):
                    raise
                return None
        return until(check, WAIT)

    def text(self):
        return self.run("return document.body.innerText")

    def main(self):
        return self.run("return document.querySelector('main').innerText")

    def see(self, *words):
        """Waits until the page shows all of these."""
        for word in words:
            self.until("return document.body.innerText.includes(arguments[0])", word)

    def see_no(self, word):
        self.until("return !document.body.innerText.includes(arguments[0])", word)

    # --- what a person does --------------------------------------------------

    FIND = """
      const [selector, text] = arguments;
      const shown = (e) => e.getClientRects().length && !e.disabled;
      const top = document.querySelector('dialog') || document;
      const all = [...top.querySelectorAll(selector), ...document.querySelectorAll('#toasts ' + selector)];
      return all.find((e) => shown(e) && (text === null || e.innerText.trim() === text)) || null;
    """

    def click(self, text, selector="button"):
        """A real click on what says exactly this."""
        def attempt():
            found = self.run(self.FIND, selector, text)
            if not found:
                return False
            try:
                found.click()
            except (StaleElementReferenceException, WebDriverException):
                return False
            return True
        until(attempt, WAIT)

    def press(self, row, text):
        """The button that begins with this, in the first row of a table that has that text."""
        self.until("""
          const [row, text] = arguments;
          const found = [...document.querySelectorAll('main tbody tr')].find((r) => r.innerText.includes(row));
          const button = found && [...found.querySelectorAll('button')].find((b) => b.innerText.trim().startsWith(text) && !b.disabled);
          if (button) button.click();
          return Boolean(button);
        """, row, text)

    def has_button(self, text):
        return self.run(self.FIND, "button", text) is not None

    def fill(self, name, value):
        field = until(lambda: self.run("return (document.querySelector('dialog') || document).querySelector(`[name=\"${arguments[0]}\"]`)", name))
        field.clear()
        field.send_keys(value)

    def keys(self, *keys):
        """Keys to whatever has the focus, as a keyboard sends them."""
        actions = ActionChains(self.driver)
        for key in keys:
            actions.send_keys(key)
        actions.perform()

    def chord(self, modifier, key):
        ActionChains(self.driver).key_down(modifier).send_keys(key).key_up(modifier).perform()

    def blur(self):
        self.run("document.activeElement && document.activeElement.blur()")

    def at_once(self):
        """In a dialog that begins a task: it does not wait for an undo."""
        self.run("document.querySelector('dialog [name=held]').click()")

    # --- what must hold ------------------------------------------------------

    def theme(self, name):
        """As the button does, until it says this."""
        for _ in range(3):
            if self.run("return document.documentElement.dataset.theme") == name:
                return
            self.run("document.getElementById('theme').click()")

    def shoot(self, name):
        SHOTS.mkdir(parents=True, exist_ok=True)
        self.driver.save_screenshot(str(SHOTS / f"{name}.png"))

    def audit(self, where, rules=None):
        """axe-core finds nothing; by the debugger, so that the policy stays on. rules: only these."""
        if not self.run("return Boolean(window.axe)"):
            self.axe = self.axe or axe_source()
            self.driver.execute_cdp_cmd("Runtime.evaluate", {"expression": self.axe})
        found = self.driver.execute_async_script("""
          const done = arguments[arguments.length - 1];
          axe.run(document, {runOnly: arguments[0] || ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'best-practice'], resultTypes: ['violations']})
            .then((r) => done(r.violations.map((v) => v.id + ': ' + v.nodes.slice(0, 3).map((n) => n.target.join(' ') + ' ' + (n.any[0] ? n.any[0].message : '')).join(' | '))),
                  (e) => done(['axe failed: ' + e]));
        """, rules)
        assert found == [], (where, found)

    def clean(self):
        """The policy refused nothing, and no script went wrong."""
        for what in ("refused", "wrong"):
            found = self.run(f"return window.__{what}")
            assert found == [], (what, found)


__all__ = ["By", "Chromium", "Keys"]
