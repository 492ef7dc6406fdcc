"""What a person does, in a real browser: every page accessible, from the form to the report."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect, sync_playwright

from concurve.host.native import binary
from concurve.store import Store
from tests.helpers.real import Lab, first_line, missing, wait_until
from tests.helpers.waiting import waiting_run
from tests.web.places import Served, serve, small_run

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium")

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium: apt-get install chromium"),
    pytest.mark.skipif(missing() is not None, reason=missing() or ""),
]

#: Whatever is sure to come comes within this time.
PATIENCE_MS = 120_000

Open = Callable[..., Page]

#: A laboratory, its server, and the runs in its store.
Here = tuple[Lab, Served, list[str]]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as driver:
        made = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield made
        made.close()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Here]:
    """A server on a store with two runs, and two more whose threads wait for locks."""
    lab = Lab(tmp_path_factory.mktemp("web"))
    store = Store(str(lab.db))
    runs = [small_run(store, seed=seed) for seed in (1, 2)]
    runs.append(waiting_run(store, 3, {"Table::add": 90, "Log::write": 10}))
    runs.append(waiting_run(store, 4, {"Log::write": 70}))
    store.close()
    found = serve(lab, XDG_DATA_HOME=str(lab.folder))
    yield lab, found, runs
    found.process.kill()
    found.process.communicate()
    lab.end()


@pytest.fixture
def opened(browser: Browser, served: Here) -> Iterator[Open]:
    """Opens a page with a session; a request to elsewhere, or an error of a script, fails."""
    server = served[1]
    own = f"http://{server.host}:{server.port}/"
    wrong: list[str] = []
    contexts = []

    def asked(url: str) -> None:
        if not url.startswith((own, "data:", "blob:")):
            wrong.append(url)

    def said(text: str) -> None:
        if "Content Security" in text:
            wrong.append(text)

    def open_page(
        path: str,
        width: int = 1200,
        scheme: str = "light",
        login: bool = True,
        key: bool = True,
    ) -> Page:
        size = {"width": width, "height": 800}
        context = browser.new_context(viewport=size, color_scheme=scheme)  # type: ignore[arg-type]
        contexts.append(context)
        context.set_default_timeout(PATIENCE_MS)
        if login:
            name, _, value = server.cookie.partition("=")
            context.add_cookies([{"name": name, "value": value, "url": own}])
        if login and key:
            text = json.dumps(server.key)
            context.add_init_script(f"localStorage.setItem('concurve-key', {text})")
        page = context.new_page()
        page.on(
            "request",
            lambda it: None if it.url.startswith((own, "data:")) else wrong.append(it.url),
        )
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on(
            "console", lambda it: wrong.append(it.text) if "Content Security" in it.text else None
        )
        page.goto(own + path)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert wrong == []


def assert_accessible(page: Page) -> None:
    page.evaluate("document.querySelectorAll('details').forEach((item) => { item.open = true })")
    found = Axe().run(page).response["violations"]
    assert not found, [(item["id"], item["nodes"][0]["html"][:200]) for item in found]


def report_of(page: Page) -> None:
    """Wait for the report of a page."""
    expect(page.locator("#report:not([aria-busy])")).to_be_visible(timeout=PATIENCE_MS)
    expect(page.locator("#said")).to_be_hidden()


def test_the_address_with_the_token_leads_in(opened: Open, served: Here) -> None:
    page = opened("", login=False)
    assert_accessible(page)
    page.get_by_label("Token").fill("wrong")
    page.get_by_role("button", name="Log in").press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("not the token")
    page.goto(served[1].address)
    page.reload()  # the same page with another fragment is not loaded anew by itself
    expect(page.get_by_role("heading", name="Runs")).to_be_visible(timeout=PATIENCE_MS)
    assert "token" not in page.url


def test_the_address_leads_in_a_browser_that_has_a_session_and_no_key(
    opened: Open, served: Here
) -> None:
    """The server leads it on to another page, and the browser keeps the fragment."""
    server = served[1]
    page = opened(f"#token={server.token}", key=False)
    stored = page.context.storage_state
    wait_until(lambda: server.key in str(stored()["origins"]), "the key")
    expect(page.get_by_role("heading", name="Runs")).to_be_visible(timeout=PATIENCE_MS)
    assert page.url.endswith("/runs")


@pytest.mark.parametrize(
    ("path", "width", "scheme"),
    [("runs", 1200, "light"), ("runs", 400, "dark"), ("new?study=thread-scaling", 1200, "dark"),
     ("new", 400, "light"), ("compare", 400, "light"), ("history", 1200, "dark"),
     ("nothing", 1200, "light"), ("window", 400, "dark"), ("window", 1400, "light"),
     ("servers?place=127.0.0.1:1", 400, "light"), ("disk", 400, "dark"), ("disk", 2000, "light")],
)  # fmt: skip
def test_pages_are_accessible_at_every_width(
    opened: Open, path: str, width: int, scheme: str
) -> None:
    page = opened(path, width, scheme)
    assert_accessible(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_two_runs_are_compared_from_the_list(opened: Open, served: Here) -> None:
    first, second = served[2][:2]
    page = opened("runs")
    page.get_by_label(f"Base: {first}").focus()
    page.keyboard.press("Space")
    page.get_by_label(f"New: {second}").focus()
    page.keyboard.press("Space")
    page.get_by_role("button", name="Compare").press("Enter")
    report_of(page)
    expect(page.get_by_role("heading", name=f"{second} against {first}")).to_be_visible()
    assert first in page.url and second in page.url
    assert_accessible(page)


@pytest.mark.parametrize(
    ("width", "scheme"), [(400, "light"), (400, "dark"), (1200, "light"), (2000, "dark")]
)
def test_blocked_time_of_two_runs_is_compared(
    opened: Open, served: Here, width: int, scheme: str
) -> None:
    base, new = served[2][2:]
    page = opened(f"compare?base={base}&new={new}", width, scheme)
    report_of(page)
    graph = page.get_by_role("region", name="Where blocked time differs").locator("figure").first
    expect(graph.locator("figcaption")).to_contain_text("Where blocked time goes, threads=")
    expect(graph).to_contain_text(f"{base}, the base:")
    # Marked by the page's script: before, nothing heeds the pointer.
    frame = graph.locator("[data-mark][aria-label^='Log::write:']").first
    frame.hover()
    tip = page.locator("#tip")
    expect(tip).to_contain_text("in the base")
    page.keyboard.press("Escape")
    graph.locator("[data-mark][tabindex='0']").focus()
    page.keyboard.press("ArrowRight")
    expect(tip).to_contain_text("in the base")
    assert_accessible(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.soak  # measures in a browser: minutes beside other tests
def test_a_measurement_from_its_form_to_its_report(opened: Open) -> None:
    page = opened("new", 1000)
    form = page.locator("#sweep")
    form.get_by_label("Command", exact=True).fill("sh -c 'sleep 0.3; echo {n}'")
    form.get_by_label("Name", exact=True).fill("n")
    form.get_by_label("Levels", exact=True).fill("1,2")
    form.get_by_label("Effort").select_option("quick")
    form.locator("summary", has_text="How often").click()
    form.get_by_label("Trials a cell").fill("3..3")
    form.get_by_role("button", name="Show the plan").click()
    expect(page.locator("#plan")).to_contain_text("2 cells × 3 each = 6", timeout=PATIENCE_MS)
    expect(page.locator("#line")).to_contain_text("concurve sweep -P n 1,2 --effort=quick")
    form.get_by_role("button", name="Start").click()
    page.wait_for_url("**/runs/2*", timeout=PATIENCE_MS)
    report_of(page)  # it has followed the run to its end by itself
    expect(page.get_by_text("How does sh scale with n?").first).to_be_visible()
    assert page.locator("svg.chart").count() >= 1
    assert_accessible(page)
    page.set_viewport_size({"width": 400, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 400


@pytest.mark.soak  # measures in a browser: minutes beside other tests
def test_a_run_is_stopped_and_resumed_from_its_page(opened: Open) -> None:
    page = opened("new")
    form = page.locator("#sweep")
    form.get_by_label("Command", exact=True).fill("sh -c 'sleep 0.3' {n}")
    form.get_by_label("Name", exact=True).fill("n")
    form.get_by_label("Levels", exact=True).fill("1,2")
    form.locator("summary", has_text="How often").click()
    form.get_by_label("Trials a cell").fill("300..300")
    form.get_by_role("button", name="Start").click()
    page.wait_for_url("**/runs/2*", timeout=PATIENCE_MS)
    expect(page.locator("#count")).to_contain_text(re.compile("of 6[0-9]+ trials"))
    expect(page.locator("#cells tr")).to_have_count(2, timeout=PATIENCE_MS)
    expect(page.locator("#under-way")).to_contain_text("trial")
    assert_accessible(page)
    page.get_by_role("button", name="Stop").press("Enter")
    expect(page.locator(".state")).to_have_text("interrupted", timeout=PATIENCE_MS)
    page.get_by_role("button", name="Resume").click()
    expect(page.locator(".state")).to_have_text("running", timeout=PATIENCE_MS)
    page.wait_for_load_state()  # its script answers the button
    page.get_by_role("button", name="Stop").press("Enter")
    expect(page.locator(".state")).to_have_text("interrupted", timeout=PATIENCE_MS)


def test_what_a_form_has_wrong_is_said_beside_it(opened: Open) -> None:
    page = opened("new")
    form = page.locator("#sweep")
    form.get_by_label("Command", exact=True).fill("sh -c 'open")
    form.get_by_role("button", name="Show the plan").click()
    expect(page.locator("#said")).to_contain_text("cannot be split", timeout=PATIENCE_MS)
    expect(page.locator("#of-command")).to_be_hidden()


def test_what_a_start_is_refused_for_is_said_once(opened: Open) -> None:
    page = opened("new", 400)
    form = page.locator("#sweep")
    form.get_by_label("Command", exact=True).fill("./renderer {thread}")
    form.get_by_label("Name", exact=True).fill("threads")
    form.get_by_label("Levels", exact=True).fill("1,2")
    form.get_by_role("button", name="Start").click()
    said = page.locator("#said")
    expect(said).to_contain_text("placeholder {thread} has no parameter", timeout=PATIENCE_MS)
    assert "\ntry: " in said.inner_text(), "a line of its own, as on the command line"
    expect(page.get_by_role("heading", name="Nothing is measured")).to_be_visible()
    expect(page.locator("#progress")).to_be_hidden()
    expect(page.locator("#line")).to_contain_text("concurve sweep -P threads")
    assert_accessible(page)


def test_the_ids_of_two_runs_are_seen_whole(opened: Open, served: Here) -> None:
    first, second = served[2][:2]
    page = opened(f"compare?base={first}&new={second}", 2000)
    for name in ("#base", "#new"):
        cut = "(field) => field.scrollWidth - field.clientWidth"
        assert page.locator(name).evaluate(cut) <= 0


def test_the_choice_of_a_study_is_as_wide_as_its_place(opened: Open) -> None:
    page = opened("history", 2000)
    place = "(box) => box.getBoundingClientRect().width"
    select = page.get_by_label("Study")
    assert select.evaluate(place) > 0.9 * select.locator("..").evaluate(place)


def computed(page: Page) -> int:
    """The pixel sum of the picture that was computed last."""
    state = page.locator("#state")
    expect(state).to_contain_text("Ended", timeout=PATIENCE_MS)
    return int(state.inner_text().rpartition("pixel sum ")[2])


@pytest.mark.soak  # measures in a browser: minutes beside other tests
def test_the_window_computes_what_the_command_line_does(opened: Open, tmp_path: Path) -> None:
    page = opened("window", 1400)
    page.get_by_label("Iterations").fill("150")
    page.get_by_role("button", name="Compute").click()
    kernel = str(binary("concurve-mandelbrot"))
    line = [kernel, "--threads", "2", "--iterations", "150"]
    printed = subprocess.run(line, capture_output=True, text=True, check=True).stdout
    whole = computed(page)
    assert f"pixel_sum {whole}\n" in printed
    threads = page.locator("#thread-rows tr", has=page.locator(".patch"))
    expect(threads).to_have_count(2)
    painted = """() => document.getElementById('picture').getContext('2d')
        .getImageData(500, 700, 1, 1).data[3] === 255"""
    # The last lines may arrive after the end of the computation is shown.
    wait_until(lambda: page.evaluate(painted), "the last lines")
    files = {}
    for ending in ("toml", "xml"):
        with page.expect_download() as saved:
            page.get_by_role("button", name=f"Save as {ending.upper()}").click()
        files[ending] = tmp_path / saved.value.suggested_filename
        saved.value.save_as(files[ending])
    picture = page.locator("#picture")
    picture.hover(position={"x": 100, "y": 100})
    page.mouse.down()
    picture.hover(position={"x": 200, "y": 160})
    page.mouse.up()
    expect(page.locator("#region")).not_to_contain_text("x from -0.7565")
    part = computed_other_than(page, whole)
    for ending in ("toml", "xml"):
        page.get_by_label("Load a bookmark").set_input_files(files[ending])
        assert computed_other_than(page, part) == whole
        page.get_by_role("button", name="Zoom in").click()
        part = computed_other_than(page, whole)
    page.get_by_role("button", name="Measure this").click()
    page.wait_for_url("**/new?*", timeout=PATIENCE_MS)
    assert "--location" in page.locator("#sweep-command").input_value()


def test_a_part_that_is_replaced_by_the_next_one_is_no_error(opened: Open) -> None:
    """Each press of a button takes the place of the picture before, of which nothing is told."""
    page = opened("window", 1400)
    page.get_by_label("Iterations").fill("150")
    zoom = page.get_by_role("button", name="Zoom in")
    for _ in range(70):  # deeper than there are numbers
        zoom.click()
        page.wait_for_timeout(30)
        assert "has taken its place" not in page.locator("#said").inner_text()
    expect(page.locator("#said")).to_contain_text("No smaller part")
    expect(page.locator("#region")).to_contain_text("x from -0.7")
    page.get_by_role("button", name="Zoom out").click()
    expect(page.locator("#said")).to_be_hidden()
    expect(page.locator("#state")).to_contain_text("Ended: 1 of 1", timeout=PATIENCE_MS)


def computed_other_than(page: Page, before: int) -> int:
    """The pixel sum of the next picture."""
    expect(page.locator("#state")).not_to_contain_text(f"pixel sum {before}", timeout=PATIENCE_MS)
    return computed(page)


def test_a_server_is_watched_when_its_reader_says_so(opened: Open) -> None:
    """And not because a link names it: the server may be told a password."""
    page = opened("servers?place=127.0.0.1:1&password_from=PATH")
    assert page.get_by_label("Environment variable").input_value() == ""
    expect(page.locator("#said")).to_be_hidden()
    page.get_by_role("button", name="Watch").press("Enter")
    expect(page.locator("#said")).to_contain_text("no server answers", timeout=PATIENCE_MS)
    expect(page.get_by_role("button", name="Pause")).to_be_visible()


def test_a_page_without_the_key_starts_nothing(opened: Open, served: Here) -> None:
    page = opened("new", login=False)
    name, _, value = served[1].cookie.partition("=")
    page.context.add_cookies([{"name": name, "value": value, "url": page.url}])
    page.reload()
    form = page.locator("#sweep")
    form.get_by_label("Command", exact=True).fill("true")
    form.get_by_role("button", name="Show the plan").click()
    expect(page.locator("#said")).to_contain_text("no key of this server", timeout=PATIENCE_MS)


def test_the_disk_is_simulated_under_two_schedulers(opened: Open) -> None:
    page = opened("disk", 1200)
    page.get_by_label("Scheduler", exact=True).select_option("deadline")
    page.get_by_label("and beside it").select_option("as")
    page.get_by_role("button", name="Simulate").click()
    for name in ("deadline", "as"):
        expect(page.get_by_role("heading", name=name, exact=True)).to_be_visible(
            timeout=PATIENCE_MS
        )
    page.get_by_label("Time", exact=True).focus()
    page.keyboard.press("End")
    said = page.locator("#disks .facts")
    for which in (0, 1):
        expect(said.nth(which)).to_contain_text("has ended after", timeout=PATIENCE_MS)
        expect(said.nth(which)).to_contain_text("0 waiting")
    assert page.locator("#disks svg line").count() > 10
    assert_accessible(page)
    page.set_viewport_size({"width": 400, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 400


def test_the_window_shows_threads_and_cpus(opened: Open) -> None:
    """A picture that is computed for long enough for the CPUs to be read, then stopped."""
    page = opened("window", 1400)
    page.get_by_label("Computations").fill("100")
    page.get_by_role("button", name="Compute").click()
    expect(page.locator("#cpus figure").first).to_contain_text("CPU", timeout=PATIENCE_MS)
    threads = page.locator("#thread-rows tr", has=page.locator(".patch"))
    expect(threads).to_have_count(2, timeout=PATIENCE_MS)
    colours = """() => {
      const paper = document.getElementById('picture').getContext('2d');
      const { data } = paper.getImageData(0, 0, 1016, 718);
      const seen = new Set();
      for (let i = 0; i < data.length; i += 4) {
        if (data[i + 3]) seen.add(`${data[i]},${data[i + 1]},${data[i + 2]}`);
      }
      return [...seen].sort().join(' ');
    }"""
    wait_until(lambda: page.evaluate(colours), "the first lines")
    page.get_by_role("button", name="Stop").click()
    expect(page.locator("#state")).to_contain_text("Ended", timeout=PATIENCE_MS)

    def is_still() -> bool:
        """Has the last line been drawn? Lines come until a moment after the end."""
        seen = page.evaluate(colours)
        page.wait_for_timeout(500)
        return bool(page.evaluate(colours) == seen)

    wait_until(is_still, "the last line")
    before = page.evaluate(colours)
    page.get_by_label("Coloured by").select_option("thread")
    assert page.evaluate(colours) != before
    page.get_by_label("Coloured by").select_option("iterations")
    assert page.evaluate(colours) == before
    assert_accessible(page)


def test_the_menu_of_the_window_shows_what_applies(opened: Open) -> None:
    page = opened("window", 400)
    expect(page.get_by_label("Garbage collector")).to_be_hidden()
    page.get_by_label("Kernel", exact=True).select_option("jvm")
    expect(page.get_by_label("Garbage collector")).to_be_visible()
    expect(page.get_by_label("several pixels at once")).to_be_hidden()
    page.get_by_label("Priority class").select_option("below")
    assert page.get_by_label("Nice value").input_value() == "5"
    assert page.get_by_label("Scheduling policy").input_value() == "other"
    page.get_by_label("Nice value").fill("7")
    page.get_by_label("Nice value").blur()
    assert page.get_by_label("Priority class").input_value() == ""
    assert_accessible(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 400


@pytest.mark.soak  # measures in a browser: minutes beside other tests
def test_more_trials_of_a_cell_from_the_page_of_its_run(opened: Open) -> None:
    page = opened("new")
    form = page.locator("#sweep")
    form.get_by_label("Command", exact=True).fill("sh -c 'sleep 0.1; echo {n}'")
    form.get_by_label("Name", exact=True).fill("n")
    form.get_by_label("Levels", exact=True).fill("1,2")
    form.locator("summary", has_text="How often").click()
    form.get_by_label("Trials a cell").fill("3..3")
    form.get_by_role("button", name="Start").click()
    page.wait_for_url("**/runs/2*", timeout=PATIENCE_MS)
    report_of(page)
    first = page.url
    page.locator("summary", has_text="More trials of a cell").click()
    page.get_by_label("Cell", exact=True).select_option("n=2")
    page.get_by_label("Trials", exact=True).fill("4")
    page.get_by_role("button", name="Measure").press("Enter")
    page.wait_for_url(lambda url: "/runs/2" in url and url != first, timeout=PATIENCE_MS)
    report_of(page)
    expect(page.locator("#report")).to_contain_text("4 trials")
    assert_accessible(page)


def test_a_server_shows_its_engines_and_its_dials_are_turned(opened: Open) -> None:
    line = [str(binary("concurve-server")), "--port", "0"]
    server = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        port = first_line(server).partition(" on 127.0.0.1:")[2].partition(",")[0]
        page = opened(f"servers?place=127.0.0.1:{port}", 1200)
        page.get_by_role("button", name="Watch").press("Enter")
        expect(page.locator("#engines")).to_contain_text("engine-1", timeout=PATIENCE_MS)
        expect(page.locator("#over-time")).to_contain_text("requests:")
        page.get_by_label("Nice value of all its threads").fill("9")
        page.get_by_role("button", name="Set", exact=True).press("Enter")
        wait_until(lambda: os.getpriority(os.PRIO_PROCESS, server.pid) == 9, "the nice value")
        assert_accessible(page)
        page.set_viewport_size({"width": 400, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") <= 400
    finally:
        server.kill()
        server.communicate()
