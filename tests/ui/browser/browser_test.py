#!/usr/bin/env python3
"""The page in a real browser: Chromium, headless, beside `hubferry demo` and `hubferry sim` with a manager.

Screenshots are kept in the directory given. Every test also fails if the page logged an error: an exception, or a
violation of its Content-Security-Policy."""

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import urllib.request
import xml.sax.saxutils

from devtools import Browser

BINARY = os.environ["HUBFERRY_BINARY"]
SHOTS = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")
IN_FLIGHT = "Number(document.querySelectorAll('#summary b')[2].textContent)"
FLIGHT_OF_BOTH = """(([one, other]) => one === other ? one : NaN)([...document.querySelectorAll('#hub-rows tr')]
    .filter((row) => row.cells[0].textContent !== 'global hub').map((row) => Number(row.cells[2].textContent)))"""
LIVE = "document.querySelector('#connection').dataset.state === 'live'"


def read_json(url):
    with urllib.request.urlopen(url, timeout=60) as answer:
        return json.load(answer)


class Program:
    """A hubferry command whose output is read until it says where the page is."""

    def __init__(self, *words):
        self._log = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen([BINARY, *words], stdout=self._log, stderr=subprocess.STDOUT)

    def output(self):
        self._log.seek(0)
        return self._log.read()

    def wait_for(self, pattern, seconds=180):
        limit = time.monotonic() + seconds
        while True:
            found = re.search(pattern, self.output())
            if found:
                return found
            if self.process.poll() is not None or time.monotonic() > limit:
                raise AssertionError(f"no {pattern} in: {self.output()[-3000:]}")
            time.sleep(0.05)

    def page(self):
        return self.wait_for(r"http://127\.0\.0\.1:\d+/").group(0)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self._log.close()


def new_page(browser):
    """With the page's own functions at hand."""
    page = browser.page()
    page.import_modules("/state.js", "/redraw.js", "/clusters.js", "/cluster.js", "/grid.js", "/format.js")
    return page


def text(page, selector):
    return page.evaluate(f"document.querySelector({json.dumps(selector)}).innerText")


def state_counts(page):
    """How many clusters of each state the grid has."""
    return page.evaluate("model.clusters.states.reduce((all, s) => ({...all, [s]: (all[s] || 0) + 1}), {})")


def a_migration_of_200_clusters_is_shown_from_start_to_end(browser):
    with Program("demo", "--clusters", "200", "--migrations", "2", "--keep") as demo:
        page = new_page(browser)
        page.size(1440, 900)
        page.prefers("light")
        page.open(demo.page())
        page.wait_until(LIVE)
        page.wait_until("model.migrations.size === 2")
        page.wait_until("model.clusters && model.clusters.names.length === 100")
        # Some have arrived, others not: the grid is live, not a picture of the end.
        page.wait_until("model.clusters.states.filter((s) => s === 'd').length > 40 && model.clusters.states.includes('m')", 300)
        # The figures of a frame agree: between the two hubs are the clusters that are on their way.
        page.wait_until(IN_FLIGHT + " > 0")
        assert page.evaluate(IN_FLIGHT + " === " + FLIGHT_OF_BOTH), text(page, "#hubs") + text(page, "#summary")
        page.screenshot(SHOTS / "light.png", False)
        page.prefers("dark")
        page.wait_until("document.querySelector('#theme').textContent === 'Light'")
        page.screenshot(SHOTS / "dark.png")
        page.wait_until("[...model.migrations.values()].every((m) => m.phase === 'Completed')", 300)
        page.wait_until("model.clusters.states.every((s) => s === 'd')")
        # What is known is drawn with the next frame.
        phases = "[...document.querySelectorAll('.span')].map((s) => s.firstChild.textContent)"
        page.wait_until(phases + ".slice(-2).join() === 'Cleaning,Completed'")
        assert text(page, "#title").startswith("move-"), text(page, "#title")
        assert "100 of 100 migrated" in text(page, "#progress"), text(page, "#progress")
        assert re.search(r"100/100\s+took \d+s\s+hub1 → hub2\s+age \d+s", text(page, "#list")), text(page, "#list")
        page.wait_until("document.querySelector('#flow').textContent.includes('200 moved')")
        assert "to go" not in text(page, "#flow"), text(page, "#flow")
        # Nothing is pending or on its way once all have ended.
        assert text(page, "#summary").split()[:2] == ["0", "active"], text(page, "#summary")
        use_the_keyboard(page)
        hubs = text(page, "#hubs")
        assert "hub1" in hubs and "reachable" in hubs, hubs
        page.size(400, 900, 2)
        page.prefers("light")
        page.wait_until("innerWidth === 400")
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert wide <= 400, f"the page is {wide} px wide at 400 px"
        page.screenshot(SHOTS / "phone.png")
        return page.problems


def labels_are_clear_of_hubs(page):
    """No label of the diagram covers a hub, and none is cut off, however narrow it is."""
    page.wait_until("document.querySelector('#flow svg').viewBox.baseVal.width <= document.querySelector('#flow').clientWidth")
    overlap = """[...document.querySelectorAll('#flow .label')].some((label) => {
        const a = label.getBoundingClientRect(), all = document.querySelector('#flow svg').getBoundingClientRect();
        return a.bottom > all.bottom + 1 || a.left < all.left - 1 || [...document.querySelectorAll('#flow .node')].some((node) => {
            const b = node.querySelector('rect').getBoundingClientRect();
            return a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom; }); })"""
    assert not page.evaluate(overlap), text(page, "#flow")


def use_the_keyboard(page):
    page.evaluate("document.querySelector('#canvas').focus()")
    page.key("ArrowRight")
    page.key("ArrowRight")
    page.wait_until("document.querySelector('#grid-now').textContent.includes('migrated')")
    page.key("Enter")
    page.wait_until("!document.querySelector('#cluster').hidden")
    assert "migrating" in text(page, "#cluster") and "migrated" in text(page, "#cluster"), text(page, "#cluster")
    page.key("Escape")
    page.wait_until("document.querySelector('#cluster').hidden")
    before = text(page, "#title")
    page.evaluate("document.querySelector('.item[aria-selected=true]').focus()")
    page.key("ArrowDown")
    page.key("ArrowUp") if text(page, "#title") != before else None
    page.evaluate("document.querySelector('#theme').focus()")
    page.key("Enter")


def a_rollback_is_shown_with_its_reasons(browser):
    with Program("demo", "--clusters", "30", "--migrations", "1", "--fail", "registering", "--keep") as demo:
        page = new_page(browser)
        page.size(1440, 900)
        page.open(demo.page())
        page.wait_until("[...model.migrations.values()].some((m) => m.kind === 'rollback')", 300)
        # Nothing migrates any more: all that have not arrived go back.
        page.wait_until("document.querySelector('#legend').innerText.includes('returning')")
        page.wait_until("/[1-9]\\d* (returning|rolled back)/.test(document.querySelector('#flow').textContent)")
        page.wait_until("[...model.migrations.values()].every((m) => m.phase === 'Failed')", 300)
        page.wait_until("model.clusters.states.every((s) => s === 'r')")
        page.wait_until("document.querySelector('#progress').innerText.includes('30 rolled back')")
        assert "Timeout" in text(page, "#failures"), text(page, "#failures")
        page.wait_until("document.querySelector('#list').innerText.includes('0/30, 30 rolled back')")
        # A click on a cell of the grid.
        box = page.evaluate("(({x, y}) => [x, y])(document.querySelector('#canvas').getBoundingClientRect())")
        page.click(box[0] + 8, box[1] + 8)
        page.wait_until("!document.querySelector('#cluster').hidden")
        page.wait_until("(({top, bottom}) => top > 0 && bottom <= innerHeight)(document.querySelector('#cluster').getBoundingClientRect())")
        covered = "document.querySelector('#cluster').getBoundingClientRect().top < document.querySelector('#grid').getBoundingClientRect().bottom"
        page.wait_until("!(" + covered + ")")
        assert "Timeout in Registering" in text(page, "#cluster"), text(page, "#cluster")
        # What failed is back: nothing is left to go.
        assert "30 rolled back" in text(page, "#flow") and "to go" not in text(page, "#flow"), text(page, "#flow")
        page.screenshot(SHOTS / "rollback.png", False)
        return page.problems


class Manager:
    """`hubferry sim` with so many clusters, and a manager with the page."""

    def __init__(self, clusters, *flags):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="hubferry-browser-"))
        self.sim = Program("sim", "--clusters", str(clusters), "--kubeconfig-dir", str(self.directory), *flags)
        self.sim.wait_for("ready")
        self.manager = None

    def start(self, address="127.0.0.1:0", *flags):
        self.manager = Program(
            "manager", "--kubeconfig", str(self.directory / "global.kubeconfig"), "--metrics-bind-address=127.0.0.1:0",
            "--health-probe-bind-address=127.0.0.1:0", "--ui-bind-address", address, *flags)
        return self.manager.page()

    def stop(self):
        self.manager.__exit__()

    def kubectl(self, *words, **more):
        return subprocess.run(["kubectl", "--kubeconfig", self.directory / "global.kubeconfig", *words], check=True,
                              text=True, capture_output=True, **more).stdout

    def migrate(self, clusters, name="move"):
        migration = {
            "apiVersion": "global-hub.open-cluster-management.io/v1alpha1", "kind": "ManagedClusterMigration",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"from": "hub1", "to": "hub2", "includedManagedClusters": clusters}}
        self.kubectl("create", "-f", "-", input=json.dumps(migration))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.manager:
            self.stop()
        self.sim.__exit__()
        shutil.rmtree(self.directory, ignore_errors=True)


def hostile_names_are_text_and_a_lost_manager_is_found_again(browser):
    hostile = "<script>alert(1)</script><img src=x onerror=alert(2)>"
    with Manager(5) as world:
        url = world.start()
        world.migrate([hostile, "cluster-0001"], "hostile")
        page = new_page(browser)
        page.size(1440, 900)
        page.open(url)
        page.wait_until("model.clusters && model.clusters.names.length === 2")
        page.wait_until("[...model.migrations.values()].every((m) => m.phase === 'Failed')")
        page.wait_until("document.querySelector('#notices').textContent.includes('<script>alert(1)')")
        assert page.evaluate("document.querySelectorAll('main script, main img:not([width])').length") == 0
        page.evaluate(f"openCluster({json.dumps(hostile)})")
        page.wait_until("document.querySelector('#cluster strong')")
        assert text(page, "#cluster strong") == hostile
        problems = list(page.problems)

        # The manager goes away, a migration is created meanwhile, and another manager takes its place.
        port = url.rstrip("/").rsplit(":", 1)[1]
        world.stop()
        page.wait_until("document.querySelector('#connection').dataset.state === 'lost'")
        page.wait_until("document.body.classList.contains('stale')")
        world.migrate(["cluster-0002"], "meanwhile")
        world.start("127.0.0.1:" + port)
        page.wait_until(LIVE)
        page.wait_until("!document.body.classList.contains('stale')")
        page.wait_until("model.migrations.has('default/meanwhile')")
        page.evaluate("(closeCluster(), scrollTo({top: 0, behavior: 'instant'}))")
        page.screenshot(SHOTS / "hostile.png")
        # While there was no manager the browser logged that it could not connect.
        return problems + [p for p in page.problems[len(problems):] if "ERR_CONNECTION_REFUSED" not in p and "ERR_INCOMPLETE" not in p and "ERR_EMPTY" not in p and "ERR_CONNECTION_RESET" not in p]


def a_page_that_is_refused_says_why_and_connects_later(browser):
    with Manager(0, "--agents=false") as world:
        url = world.start()
        others = [urllib.request.urlopen(url + "api/events", timeout=60) for _ in range(32)]
        page = new_page(browser)
        page.open(url)
        page.wait_until("document.querySelector('#connection').textContent === 'Reconnecting: too many viewers'")
        for other in others:
            other.close()
        page.wait_until(LIVE)
        return [p for p in page.problems if "503" not in p]


FLEET = [f"edge-{number:05d}" for number in range(5000)]
MIGRATIONS = "/apis/global-hub.open-cluster-management.io/v1alpha1/namespaces/default/managedclustermigrations"


def fleet_ledger(uid, arrived, failed, back):
    conflict = {"stage": "Deploying", "reason": "ClusterConflict", "message": "Secret pull-secret exists on hub 'hub2' and is not ours"}
    lists = {"all-clusters": FLEET, "success": arrived, "failure": failed, "rolled-back": back,
             "failure-details": {name: conflict for name in failed}}
    return {"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "fleet", "namespace": "default", "labels": {"hubferry.io/migration": uid}},
            "data": {key: json.dumps(value) for key, value in lists.items()}}


def fleet_status(phase, condition, message, arrived, failed, back):
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    done = {"done": True, "startTime": at, "endTime": at}
    states = {name: done for name in ("Pending", "Validating", "Initializing", "Deploying")}
    states |= {"Registering": {**done, "failed": True}} if phase == "Rollbacking" else {}
    states[phase] = {"done": False, "startTime": at}
    counts = {"total": 5000, "migrated": len(arrived), "migrating": 5000 - len(arrived) - len(failed), "pending": 0,
              "failed": len(failed), "rolledBack": len(back), "progress": f"{len(arrived)}/5000"}
    return {"phase": phase, "from": "hub1", "to": "hub2", "startTime": at, "stage": {"phase": phase, "startTime": at},
            "clusters": counts, "state": states,
            "conditions": [{"type": condition, "status": "False", "reason": "Waiting", "message": message, "lastTransitionTime": at}]}


def write_fleet(world, phase, condition, arrived, failed, back):
    """What a manager writes: the ledger, then the status."""
    object_ = json.loads(world.kubectl("get", "--raw", MIGRATIONS + "/fleet"))
    ledger = fleet_ledger(object_["metadata"]["uid"], arrived, failed, back)
    world.kubectl("replace" if phase == "Rollbacking" else "create", "-f", "-", input=json.dumps(ledger))
    message = f"{len(back)} of {len(failed)} clusters are back on hub 'hub1'" if back else f"{len(arrived)} of 5000 clusters arrived"
    object_["status"] = fleet_status(phase, condition, message, arrived, failed, back)
    world.kubectl("replace", "--raw", MIGRATIONS + "/fleet/status", "-f", "-", input=json.dumps(object_))


def figures(page):
    """How many clusters of each state the page says there are, in each of its places; and the page's line below the bar."""
    digits = "[...document.querySelectorAll('%s')].map((n) => Number(n.textContent.replace(/\\D/g, '')))"
    tiles = page.evaluate(digits % "#summary b")[1:]
    legend = page.evaluate(digits % "#legend span")
    drawn = state_counts(page)
    return tiles, legend, [drawn.get(letter, 0) for letter in "pmdfr"], text(page, "#progress"), text(page, "#flow")


def texts_are_divided_where_their_parts_end(browser):
    with Manager(0, "--agents=false") as world:
        page = new_page(browser)
        page.open(world.sim.page())
        page.wait_until(LIVE)
        message = "34 of 100 arrived; waiting: 30 not applied (its condition says why): a, b; 36 not registered (none yet; or pending): c"
        assert page.evaluate(f"parts({json.dumps(message)})") == [
            "34 of 100 arrived", "30 not applied (its condition says why): a, b", "36 not registered (none yet; or pending): c"]
        assert page.evaluate("parts('one) two; three (four')") == ["one) two", "three (four"]
        day = "Date.UTC(2026, 0, 2, 3, 4, 5)"
        assert page.evaluate(f"when({day}, {day} + 60000)") == "03:04:05"
        # Of a migration of yesterday, a time without its date would mislead.
        assert page.evaluate(f"when({day}, {day} + 86400000)") == "2026-01-02 03:04"
        return page.problems


def five_thousand_clusters_are_one_screen(browser):
    # Without a manager: the page is the simulator's. What it shows is written as a manager would write it.
    with Manager(0, "--agents=false") as world:
        world.migrate(FLEET, "fleet")
        page = new_page(browser)
        page.size(1440, 900)
        page.prefers("light")
        page.open(world.sim.page())
        page.wait_until("model.clusters && model.clusters.names.length === 5000", 300)
        assert figures(page)[0] == [5000, 0, 0, 0, 0], figures(page)

        failed = [name for at, name in enumerate(FLEET) if at % 97 == 13]
        arrived = [name for at, name in enumerate(FLEET) if at % 97 != 13 and at * 7919 % 5000 < 3200]
        write_fleet(world, "Registering", "ClusterRegistered", arrived, failed, [])
        numbers = [0, 5000 - len(arrived) - len(failed), len(arrived), len(failed), 0]
        page.wait_until(f"model.clusters.states.filter((s) => s === 'f').length === {len(failed)}")
        page.wait_until("!areLoading() && !changed.grid")
        tiles, legend, drawn, progress, flow = figures(page)
        assert tiles == legend == drawn == numbers, (tiles, legend, drawn, numbers)
        assert f"{len(arrived):,} of 5,000 migrated, {len(failed)} failed" in progress, progress
        assert f"{len(arrived):,} of 5,000, {len(failed)} failed" in flow and f"{numbers[1]:,} to go" in flow, flow
        took = page.evaluate("(() => { const t = performance.now(); drawLegend(); drawGrid(); return performance.now() - t; })()")
        print(f"drawing 5,000 clusters: {took:.0f} ms")
        # This process is no manager: of a hub that clusters move from it knows nothing, which is not the same as unused.
        assert "unused" not in text(page, "#hubs") and "unknown" in text(page, "#hubs"), text(page, "#hubs")
        page.screenshot(SHOTS / "five-thousand.png")
        page.size(400, 900, 2)
        page.wait_until("innerWidth === 400")
        labels_are_clear_of_hubs(page)
        page.screenshot(SHOTS / "five-thousand-phone.png", False)
        page.size(1440, 900)
        page.wait_until("innerWidth === 1440")

        # Below the fold as it may be: what was clicked is in sight.
        page.evaluate("document.querySelector('#clusters-panel').scrollIntoView({behavior: 'instant'})")
        page.evaluate(f"openCluster({json.dumps(failed[0])})")
        page.wait_until("!document.querySelector('#cluster').hidden")
        page.wait_until("(({top, bottom}) => top > 0 && bottom <= innerHeight)(document.querySelector('#cluster').getBoundingClientRect())")
        assert "ClusterConflict in Deploying" in text(page, "#cluster"), text(page, "#cluster")
        page.evaluate("closeCluster()")

        # No cluster changes with the phase, but what is on its way goes back from now on.
        write_fleet(world, "Rollbacking", "ResourceRolledBack", arrived, failed, [])
        page.wait_until(f"document.querySelector('#legend').innerText.includes('returning {numbers[1]:,}')", 20)
        failed = [name for name in FLEET if name not in set(arrived)]
        back = failed[:1000]
        write_fleet(world, "Rollbacking", "ResourceRolledBack", arrived, failed, back)
        page.wait_until("model.clusters.states.filter((s) => s === 'r').length === 1000")
        page.wait_until("!areLoading() && !changed.grid")
        tiles, legend, drawn, progress, flow = figures(page)
        assert tiles == legend == drawn == [0, 0, len(arrived), len(failed) - 1000, 1000], (tiles, legend, drawn)
        assert "1,000 rolled back" in progress and "1,000 rolled back" in flow, (progress, flow)
        page.evaluate("(() => { const order = document.querySelector('#order'); order.value = 'state'; order.dispatchEvent(new Event('input')); })()")
        page.wait_until("stateAt(0) === 'failed' && stateAt(layout.places.length - 1) === 'migrated'")
        page.prefers("dark")
        page.wait_until("document.querySelector('#theme').textContent === 'Light'")
        page.evaluate("scrollTo({top: 0, behavior: 'instant'})")
        page.screenshot(SHOTS / "five-thousand-rollback.png")
        page.evaluate("""(() => { const find = document.querySelector('#find-cluster'); find.value = 'edge-0012';
            find.dispatchEvent(new Event('input')); })()""")
        page.wait_until("document.querySelector('#grid-now').textContent.startsWith('10 of 5,000 clusters')")
        page.evaluate("""(() => { const find = document.querySelector('#find-cluster'); find.value = '';
            find.dispatchEvent(new Event('input')); document.querySelector('#legend button').click(); })()""")
        page.wait_until("document.querySelector('#legend button').getAttribute('aria-pressed') === 'false'")
        return page.problems


def a_hub_without_migrations_says_how_to_begin(browser):
    with Manager(0, "--agents=false") as world:
        page = new_page(browser)
        page.size(1440, 900)
        page.prefers("light")
        page.open(world.sim.page())
        page.wait_until(LIVE)
        page.wait_until("!document.querySelector('#empty').hidden")
        assert "hubferry migrate" in text(page, "#empty")
        page.screenshot(SHOTS / "empty.png")
        return page.problems


def a_token_is_asked_for_and_kept_in_memory_only(browser):
    with Manager(0) as world:
        url = world.start("127.0.0.1:0", "--ui-auth=token")
        world.kubectl("create", "serviceaccount", "viewer", "-n", "default")
        world.kubectl("create", "clusterrole", "viewer", "--verb=list",
                      "--resource=managedclustermigrations.global-hub.open-cluster-management.io")
        world.kubectl("create", "clusterrolebinding", "viewer", "--clusterrole=viewer", "--serviceaccount=default:viewer")
        # `kubectl create token` is not in every version.
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        answer = world.kubectl("create", "--raw", "/api/v1/namespaces/default/serviceaccounts/viewer/token", "-f", "-",
                               input=json.dumps(request))
        token = json.loads(answer)["status"]["token"]
        page = new_page(browser)
        page.open(url)
        page.wait_until("document.querySelector('#login').open")
        page.evaluate("""(() => { document.querySelector('#token').value = 'made-up';
            document.querySelector('#login-form').requestSubmit(); })()""")
        page.wait_until("document.querySelector('#login-problem').textContent.includes('token')")
        page.screenshot(SHOTS / "login.png")
        page.evaluate(f"""(() => {{ document.querySelector('#token').value = {json.dumps(token)};
            document.querySelector('#login-form').requestSubmit(); }})()""")
        page.wait_until(LIVE)
        kept = page.evaluate("JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie, location.href])")
        assert token not in kept, kept
        assert token not in world.manager.output()
        return [p for p in page.problems if "401" not in p]


TESTS = [
    a_migration_of_200_clusters_is_shown_from_start_to_end,
    a_rollback_is_shown_with_its_reasons,
    hostile_names_are_text_and_a_lost_manager_is_found_again,
    a_page_that_is_refused_says_why_and_connects_later,
    texts_are_divided_where_their_parts_end,
    five_thousand_clusters_are_one_screen,
    a_hub_without_migrations_says_how_to_begin,
    a_token_is_asked_for_and_kept_in_memory_only,
]


def report(results):
    """As GoogleTest writes it: ./dev test counts the results of all suites."""
    target = os.environ.get("GTEST_OUTPUT", "")
    if not target.startswith("xml:"):
        return
    cases = ""
    for name, problem in results:
        failure = f"<failure message={xml.sax.saxutils.quoteattr(problem)}/>" if problem else ""
        cases += f'<testcase classname="Browser" name="{name}" status="run" result="completed">{failure}</testcase>'
    pathlib.Path(target[4:], "browser.xml").write_text(f"<testsuites><testsuite>{cases}</testsuite></testsuites>")


def main():
    SHOTS.mkdir(parents=True, exist_ok=True)
    wanted = os.environ.get("GTEST_FILTER", "").strip("*")
    results = []
    with Browser() as browser:
        for test in TESTS:
            if wanted not in test.__name__:
                continue
            begun = time.monotonic()
            problem = ""
            try:
                problems = test(browser)
                if problems:
                    problem = "the page reported: " + "; ".join(problems)
            except Exception:
                problem = traceback.format_exc()
            results.append((test.__name__, problem))
            print(f"{'FAILED' if problem else 'ok'} {test.__name__} ({time.monotonic() - begun:.1f} s) {problem}", flush=True)
    report(results)
    return 1 if any(problem for _, problem in results) else 0


if __name__ == "__main__":
    sys.exit(main())
