"""The page in a real browser: no errors, and what its reader touches works."""

import shutil
from random import Random

import pytest

from arenite.cli.main import main
from support.tiny_chains import dense_chain
from support.tiny_onnx import parse, save, with_random_weights

pytest.importorskip("bokeh", reason="the extra 'report' is not installed")
webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")

from selenium.webdriver import ActionChains  # noqa: E402
from selenium.webdriver.chrome.service import Service  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.support.ui import Select, WebDriverWait  # noqa: E402

TIMEOUT_S = 30
CONVOLUTIONS = """(float[1,3,48,48] x) => (y) <float[16,3,3,3] w, float[16,16,3,3] v>
{ a = Conv<pads=[1,1,1,1]>(x, w) b = Relu(a) y = Conv<strides=[2,2], pads=[1,1,1,1]>(b, v) }"""


@pytest.fixture(scope="module")
def browser():
    programs = [shutil.which(name) for name in ("chromium", "chromedriver")]
    if None in programs:
        pytest.skip("chromium and chromedriver are absent: scripts/debian-packages.sh browser")
    options = webdriver.ChromeOptions()
    options.binary_location = programs[0]
    for argument in (
        "--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--window-size=1200,1400",
        "--host-resolver-rules=MAP * ~NOTFOUND",  # no network: the page must hold all it needs
    ):  # fmt: skip
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(programs[1]))
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def page(browser, tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    (folder / "chain.tflite").write_bytes(dense_chain())
    random = Random(0)
    for index, steps in enumerate((10, 20, 40, 80, 160, 320, 640, 2000)):
        rows = (
            f"t{record},{record},{record + random.randrange(1, 30)},{random.randrange(1, 10**6)}\n"
            for record in range(steps)
        )
        (folder / f"model{index}.csv").write_text("id,lower,upper,size\n" + "".join(rows))
    (folder / "hostile.csv").write_text(
        "id,lower,upper,size\n</script><b>a</b>,0,2,64\n<img src=x onerror=alert(1)>,1,3,32\n"
    )
    save(folder, with_random_weights(parse(CONVOLUTIONS))).rename(folder / "network.onnx")
    path = folder / "report.html"
    assert main(["compare", str(folder), "--quick", "--bands", "-o", str(path)]) == 0
    return path


@pytest.fixture(autouse=True)
def opened(browser, page):
    browser.get(page.as_uri())
    WebDriverWait(browser, TIMEOUT_S).until(
        lambda driver: driver.execute_script("return document.documentElement.dataset.ready")
    )
    yield
    severe = [entry for entry in browser.get_log("browser") if entry["level"] != "INFO"]
    assert severe == []


def test_the_page_of_eleven_models_is_small_and_says_first_what_to_do(browser, page):
    assert page.stat().st_size < 5 << 20
    assert len(browser.find_elements(By.CSS_SELECTOR, "section.model[data-drawn]")) == 11
    header = browser.find_element(By.TAG_NAME, "header").text
    assert "Which strategy" in header
    assert "How much it saves" in header
    assert "What limits further saving" in header


def test_a_switch_among_two_thousand_tensors_is_fluent(browser):
    wall_ms = browser.execute_async_script(
        """
        const done = arguments[0], sections = [...document.querySelectorAll("section.model")];
        const named = (each) => each.querySelector("h2").innerText === "model7.csv";
        const large = sections.find(named);
        const select = large.querySelector("select.strategy");
        large.scrollIntoView();
        const begun = performance.now();
        select.selectedIndex = 1;
        select.dispatchEvent(new Event("change"));
        requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now() - begun)));
        """
    )
    assert wall_ms < 1500  # a busy machine takes several times what a reader waits


def section(browser):
    return browser.find_element(By.ID, "model-0")


def hover(browser, step, address):
    """Move the mouse over this step and address of the first memory map."""
    canvas = section(browser).find_element(By.CLASS_NAME, "canvas")
    browser.execute_script("arguments[0].scrollIntoView()", canvas)
    x, y = browser.execute_script(
        """
        const [step, address] = arguments, doc = Bokeh.documents[0];
        const plot = doc.get_model_by_name("map");
        let view;
        const find = (each) => {
          if (each.model === plot) view = each;
          for (const child of each.children ? each.children() : []) find(child);
        };
        for (const root of Object.values(Bokeh.index.roots ?? Bokeh.index)) find(root);
        const box = view.canvas_view.el.getBoundingClientRect();
        return [box.left + view.frame.x_scale.compute(step),
                box.top + view.frame.y_scale.compute(address)];
        """,
        step,
        address,
    )
    actions = ActionChains(browser)
    actions.w3c_actions.pointer_action.move_to_location(int(x), int(y))
    return actions


def tooltips(browser):
    """Return the text of every tooltip, however deep in shadow trees it lies."""
    return browser.execute_script(
        """
        const texts = [];
        const walk = (node) => {
          if (node.classList?.contains("arenite-tip")) texts.push(node.innerText);
          for (const child of node.shadowRoot?.children ?? []) walk(child);
          for (const child of node.children ?? []) walk(child);
        };
        walk(document.body);
        return texts.join("\\n");
        """
    )


def test_the_mouse_over_a_rectangle_tells_what_it_is(browser):
    hover(browser, 0.5, 16).perform()
    WebDriverWait(browser, TIMEOUT_S).until(lambda _: "steps [0" in tooltips(browser))
    said = tooltips(browser)
    assert "float32 1x" in said
    assert "made by" in said
    assert "read by" in said


def test_a_chosen_rectangle_keeps_its_facts_on_the_page(browser):
    hover(browser, 0.5, 16).click().perform()
    facts = section(browser).find_element(By.CLASS_NAME, "facts")
    WebDriverWait(browser, TIMEOUT_S).until(lambda _: facts.is_displayed())
    assert "B at address" in facts.text


def test_another_strategy_moves_the_rectangles_and_says_its_height(browser):
    tops = "return Math.max(...Bokeh.documents[0].get_model_by_name('records').data.top)"
    assert browser.execute_script(tops) == 384
    select = Select(section(browser).find_element(By.CSS_SELECTOR, "select.strategy"))
    select.select_by_value("no-reuse")
    assert browser.execute_script(tops) == 704
    assert section(browser).find_element(By.CLASS_NAME, "shown").text.startswith("no-reuse: 704 B")


def test_another_colouring_changes_the_legend(browser):
    legend = section(browser).find_element(By.CLASS_NAME, "legend")
    assert "FullyConnected" in legend.text
    Select(section(browser).find_element(By.CSS_SELECTOR, "select.colouring")).select_by_value(
        "kind"
    )
    assert "activation" in legend.text


def test_a_click_on_a_heading_sorts_the_table_and_another_turns_it_round(browser):
    table = section(browser).find_element(By.CSS_SELECTOR, "table.sortable")
    heading = table.find_element(By.CSS_SELECTOR, "th:nth-child(3) button")

    def heights():
        cells = table.find_elements(By.CSS_SELECTOR, "tbody td:nth-child(3)")
        return [int(cell.get_attribute("data-value")) for cell in cells]

    browser.execute_script("arguments[0].scrollIntoView()", heading)
    heading.click()
    ascending = heights()
    assert ascending == sorted(ascending)
    assert len(set(ascending)) > 1
    heading.click()
    assert heights() == sorted(ascending, reverse=True)


def test_names_from_a_model_are_text_and_never_markup(browser):
    hostile = browser.execute_script(
        "return Bokeh.documents[1].get_model_by_name('records').data.name"
    )
    assert "</script><b>a</b>" in hostile
    assert browser.find_elements(By.CSS_SELECTOR, "img, b b") == []


def test_a_model_in_bands_has_its_frontier_before_its_maps_and_one_colour_an_operator(browser):
    drawn = browser.execute_script(
        """
        const section = [...document.querySelectorAll("section.model")]
          .find((each) => each.querySelector("h2").innerText === "network.onnx");
        const names = [...section.querySelectorAll(".plot, .canvas")].map((each) => each.id);
        const legends = [...section.querySelectorAll(".legend, .rows-legend")];
        const docs = Bokeh.documents.filter((doc) => doc.get_model_by_name("rows"));
        return [names.map((name) => name.split("-")[0]), docs.length,
                legends.map((each) => each.innerText)];
        """
    )
    assert drawn[:2] == [["frontier", "figure", "rows"], 1]
    assert drawn[2][0] == drawn[2][1]
    assert "Conv2D" in drawn[2][0]
    assert "graph input" in drawn[2][0]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_needs_no_sideways_scrolling(browser, page, scheme):
    preference = {"name": "prefers-color-scheme", "value": scheme}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [preference]})
    phone = {"width": 360, "height": 780, "deviceScaleFactor": 2, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", phone)
    try:
        browser.get(page.as_uri())
        WebDriverWait(browser, TIMEOUT_S).until(
            lambda driver: driver.execute_script("return document.documentElement.dataset.ready")
        )
        assert browser.execute_script("return document.documentElement.scrollWidth") <= 360
        widths = browser.execute_script(
            "return [...document.querySelectorAll('.canvas, .plot')].map((e) => e.offsetWidth)"
        )
        assert all(300 <= width <= 360 for width in widths)
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
