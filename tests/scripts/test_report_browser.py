"""The report in headless Chromium: from disk, without errors, without any request, with clicks."""

import json
import shutil

import pytest

from scripts import report
from tests.scripts.report_runs import HOSTILE, episode, fork, grid, write_run

pytest.importorskip("igraph", reason="the extra report is not installed")
pytest.importorskip("matplotlib", reason="the extra report is not installed")
pytest.importorskip("selenium", reason="selenium is not installed")
if not (shutil.which("chromium") and shutil.which("chromedriver")):
    pytest.skip(
        "no Chromium with driver here: apt-get install chromium chromium-driver",
        allow_module_level=True,
    )

from selenium import webdriver
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.select import Select
from selenium.webdriver.support.wait import WebDriverWait

PLACE = """
const graph = document.getElementById('graph'), box = graph.getBoundingClientRect();
const found = graph._cyreg.cy.getElementById(arguments[0]);
const at = found.isNode() ? found.renderedPosition() : found.renderedMidpoint();
return [box.left + at.x, box.top + at.y];
"""


@pytest.fixture(scope="module")
def chromium():
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for argument in (
        *("--headless=new", "--no-sandbox", "--disable-dev-shm-usage"),
        *("--window-size=1400,1000", "--force-prefers-reduced-motion"),
    ):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(
        options=options, service=webdriver.ChromeService(shutil.which("chromedriver"))
    )
    driver.set_page_load_timeout(60)
    yield driver
    driver.quit()


@pytest.fixture
def opened(chromium, tmp_path):
    """Write the report of a run with the given episodes and open it from disk."""

    def run(episodes, **changes):
        page = tmp_path / "page.html"
        folder = write_run(tmp_path / "run", episodes=episodes, **changes)
        report.main([str(folder), "--output", str(page)])
        for log in ("browser", "performance"):
            chromium.get_log(log)
        chromium.get(page.as_uri())
        if episodes:
            WebDriverWait(chromium, 60).until(
                lambda d: d.execute_script("return !!document.getElementById('graph')._cyreg?.cy")
            )
            chromium.find_element(By.ID, "graph").location_once_scrolled_into_view  # noqa: B018  # scrolls
        return page.as_uri()

    return run


def requests(driver):
    messages = [json.loads(entry["message"])["message"] for entry in driver.get_log("performance")]
    return [
        m["params"]["request"]["url"]
        for m in messages
        if m["method"] == "Network.requestWillBeSent"
    ]


def click(driver, element):
    x, y = driver.execute_script(PLACE, element)
    actions = ActionChains(driver)
    actions.w3c_actions.pointer_action.move_to_location(round(x), round(y))
    actions.click().perform()


def panel(driver):
    return driver.find_element(By.ID, "panel").get_property("textContent")


def waited(driver, text):
    WebDriverWait(driver, 30).until(lambda d: text in panel(d), f"no {text!r} in the panel")
    return panel(driver)


def test_it_opens_from_disk_without_errors_and_without_requests(chromium, opened):
    address = opened(fork())
    click(chromium, "n0")
    waited(chromium, "State S")
    assert requests(chromium) == [address]
    assert chromium.get_log("browser") == []


def test_nodes_and_edges_tell_everything_and_estimators_switch(chromium, opened):
    opened(fork())
    click(chromium, "n1")
    text = waited(chromium, "State A")
    for part in ("milestone, weight 1", "you are in A", "S_pcc(v)", "Phi+(v)", "go end"):
        assert part in text
    click(chromium, "e0")
    text = waited(chromium, "Edge S to A")
    assert "over 2 steps" in text
    Select(chromium.find_element(By.ID, "estimator")).select_by_visible_text("milegpo")
    text = waited(chromium, "Mean advantage by milegpo")
    assert "+0.949" in text  # as in docs/estimators.md
    for part in ("r^M = r^G + c lambda", "Norm_q(Z)", "psi(e)", "<think>so</think>", "eta: 0.2"):
        assert part in text
    colour = "return document.getElementById('graph')._cyreg.cy.$('#e0').data('stroke')"
    by_milegpo = chromium.execute_script(colour)
    Select(chromium.find_element(By.ID, "estimator")).select_by_visible_text("graphgpo")
    assert "d(s')+1" in waited(chromium, "Mean advantage by graphgpo")
    assert chromium.execute_script(colour) != by_milegpo


def test_the_keyboard_reaches_states_edges_and_steps(chromium, opened):
    opened(fork())
    graph = chromium.find_element(By.ID, "graph")
    graph.send_keys(Keys.ARROW_RIGHT)
    waited(chromium, "State S")
    graph.send_keys(Keys.ARROW_RIGHT)
    waited(chromium, "Edge S to A")
    graph.send_keys(Keys.ARROW_RIGHT)
    waited(chromium, "State A")
    step = chromium.find_element(By.CSS_SELECTOR, "#trajectories [data-step='4']")
    step.send_keys(Keys.ENTER)
    waited(chromium, "Edge S to B")
    again = chromium.find_element(By.CSS_SELECTOR, "#trajectories [data-step='4']")
    assert again.get_attribute("aria-pressed") == "true"


def test_five_hundred_nodes_can_be_clicked(chromium, opened):
    opened(grid(16, 32))
    count = "return document.getElementById('graph')._cyreg.cy.nodes().not('.heading').length"
    assert chromium.execute_script(count) >= 500
    far = "return document.getElementById('graph')._cyreg.cy.nodes().not('.heading').last().id()"
    node = chromium.execute_script(far)
    click(chromium, node)
    waited(chromium, "Evidence")
    zoomed = """
    const cy = document.getElementById('graph')._cyreg.cy, edge = cy.edges()[100];
    cy.fit(edge, 150); return edge.id();
    """
    edge = chromium.execute_script(zoomed)
    click(chromium, edge)
    assert "Edge c" in waited(chromium, "Branch")
    assert chromium.get_log("browser") == []


def test_hostile_text_is_shown_and_never_run(chromium, opened):
    address = opened([episode(HOSTILE, 0, ["S", HOSTILE, "end"], True, reply=HOSTILE)])
    click(chromium, "e0")
    assert "window.hacked = 2" in waited(chromium, "Steps")
    assert chromium.execute_script("return window.hacked === undefined")
    assert HOSTILE[:20] in chromium.find_element(By.ID, "task").get_property("textContent")
    assert requests(chromium) == [address]
    assert chromium.get_log("browser") == []


def test_a_narrow_window_has_no_sideways_scroll(chromium, opened):
    opened(fork())
    size = chromium.get_window_size()
    chromium.set_window_size(500, 900)
    wide = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert chromium.execute_script(wide) == 0
    chromium.set_window_size(size["width"], size["height"])


def test_a_graph_too_large_to_read_shows_its_most_visited_states_and_says_so(chromium, opened):
    opened(grid(32, 40))
    drawn = (
        "return document.getElementById('graph')._cyreg.cy.nodes(':visible').not('.heading').length"
    )
    note = chromium.find_element(By.ID, "thinned")
    assert chromium.execute_script(drawn) == 1002  # beside these the start and success
    assert "The 1,002 most visited of 1,282 states are drawn, 280 are hidden" in note.text
    visits = """
    const data = JSON.parse(document.getElementById('graph-0').textContent);
    const shown = (v) => document.getElementById('graph')._cyreg.cy.$(`#n${v}`).visible();
    const of = (wanted) => data.nodes.filter((_, v) => shown(v) === wanted).map((n) => n.visits);
    const hidden = data.nodes.findIndex((_, v) => !shown(v));
    return [Math.min(...of(true)), Math.max(...of(false)), hidden];
    """
    least, most, hidden = chromium.execute_script(visits)
    assert least >= most
    states = chromium.find_element(By.ID, "states")
    states.find_element(By.XPATH, "..").find_element(By.TAG_NAME, "summary").click()
    WebDriverWait(chromium, 30).until(lambda d: len(states.find_elements(By.TAG_NAME, "tr")) > 1282)
    states.find_elements(By.TAG_NAME, "button")[hidden].send_keys(Keys.ENTER)
    waited(chromium, "Evidence")
    assert chromium.execute_script(drawn) == 1003
    chromium.find_element(By.ID, "all").send_keys(Keys.ENTER)
    assert chromium.execute_script(drawn) == 1282
    assert not note.is_displayed()
    assert "Evidence" in panel(chromium)
    assert chromium.get_log("browser") == []
