"""The page of a frontier: what it says, and that a browser draws it."""

import json
import re
import shutil

import pytest

from arenite.cli.main import main
from arenite.pipeline.report.colours import Groups
from arenite.pipeline.report.frontier import map_of
from support.tiny_onnx import parse, save, with_random_weights

pytest.importorskip("bokeh", reason="the extra 'report' is not installed")

NETWORK = """(float[1,3,48,48] x) => (y) <float[16,3,3,3] w, float[16,16,3,3] v>
{ a = Conv<pads=[1,1,1,1]>(x, w) b = Relu(a) c = Conv<strides=[2,2], pads=[1,1,1,1]>(b, v)
  y = MaxPool<kernel_shape=[2,2], strides=[2,2]>(c) }"""


def made(folder, *options, name="tiny.onnx"):
    model = save(folder, with_random_weights(parse(NETWORK)))
    path = folder / "page.html"
    renamed = model.rename(model.with_name(name)) if name != model.name else model
    assert main(["fit", str(renamed), "-o", str(path), *options]) == 0
    return path


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    return made(tmp_path_factory.mktemp("page"))


def figures(path):
    found = re.search(r'<script id="data"[^>]*>(.*?)</script>', path.read_text(), re.DOTALL)
    return json.loads(found[1])


def shown(path):
    text = path.read_text()
    return re.sub(r"<[^>]+>", "", text[text.index("<body>") : text.index('<script id="data"')])


def test_it_is_one_small_file_that_says_first_what_was_won(page):
    assert page.stat().st_size < 2 << 20
    assert re.search(
        r"tiny\.onnx runs in [\d.]+ KiB instead of 180 KiB, bit for bit, at [\d.]+ times the "
        r"time, predicted\.",
        " ".join(shown(page).split()),
    )
    assert "the graph input 'x' alone takes" in shown(page).replace("&#39;", "'")


def test_sizes_in_the_headline_are_of_one_unit():
    from arenite.cli.commands.fit.page import _in_one_unit

    assert _in_one_unit(190_016, 1_505_280) == ("186 KiB", "1,470 KiB")
    assert _in_one_unit(10_304, 49_152) == ("10.1 KiB", "48 KiB")
    assert _in_one_unit(512, 1024) == ("512 B", "1,024 B")


def test_it_holds_the_frontier_and_both_maps(page):
    assert figures(page).keys() == {"frontier", "map-whole", "map-least"}


def test_measured_times_have_a_column_and_the_headline(tmp_path):
    text = shown(made(tmp_path, "--measure"))
    assert "measured time" in text
    assert "times the time, measured" in " ".join(text.split())


def test_a_model_without_rows_has_one_map(tmp_path):
    dense = save(tmp_path, parse("(float[1,8] x) => (y) { y = Softmax(x) }"))
    path = tmp_path / "page.html"
    assert main(["fit", str(dense), "-o", str(path)]) == 0
    assert "nothing in it can run in bands for less" in shown(path)
    assert figures(path).keys() == {"frontier", "map-whole"}


def test_the_map_of_the_least_has_a_rectangle_for_each_stair(tmp_path):
    from arenite.pipeline.report.frontier_plots import row_figure
    from support.banding import banding

    *_, least = banding(save(tmp_path, with_random_weights(parse(NETWORK))))[1].frontier()
    rows = map_of(least)
    groups = Groups.of_maps([rows])
    source = row_figure(rows, groups, "map").select_one({"name": "rectangles"}).data_source.data
    problem = least.derivation.problem
    assert any(record.outline for record in problem.records)
    assert len(source["left"]) == sum(len(record.stairs) for record in problem.records)
    drawn = list(problem.rectangles(least.plan.offsets))
    assert source["bottom"].tolist() == [each.offset for each in drawn]
    assert source["top"].tolist() == [each.offset + each.size for each in drawn]
    assert source["top"].max() == least.height
    operators = [rows.operators[maker] for maker in source["label"]]
    assert set(operators) == {"graph input", "Conv2D", "Pool2D"}
    assert [groups.names[group] for group in source["group"]] == operators
    assert set(rows.tensors) >= {"x", "y"}


def test_the_packages_are_asked_for_before_the_search(tmp_path, without, capsys):
    without("bokeh")
    model = tmp_path / "absent.onnx"
    assert main(["fit", str(model), "-o", str(tmp_path / "page.html")]) == 1
    assert "pip install 'arenite[report]'" in capsys.readouterr().err


def test_a_browser_draws_all_three_figures_and_runs_no_name(tmp_path):
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.ui import WebDriverWait

    programs = [shutil.which(name) for name in ("chromium", "chromedriver")]
    if None in programs:
        pytest.skip("chromium and chromedriver are absent: scripts/debian-packages.sh browser")
    path = made(tmp_path, name="<b>onerror=alert(1).onnx")
    options = webdriver.ChromeOptions()
    options.binary_location = programs[0]
    for argument in (
        "--headless=new", "--no-sandbox", "--disable-dev-shm-usage",
        "--host-resolver-rules=MAP * ~NOTFOUND",  # no network: the page must hold all it needs
    ):  # fmt: skip
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    browser = webdriver.Chrome(options=options, service=Service(programs[1]))
    try:
        phone = {"width": 390, "height": 800, "deviceScaleFactor": 1, "mobile": True}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", phone)
        browser.get(path.as_uri())
        WebDriverWait(browser, 30).until(
            lambda driver: driver.execute_script("return document.documentElement.dataset.ready")
        )
        assert len(browser.find_elements(By.CSS_SELECTOR, ".plot[data-drawn]")) == 3
        assert browser.execute_script("return document.documentElement.scrollWidth") <= 390
        own = browser.execute_script(HEIGHTS)
        browser.execute_script("document.querySelector('.same').click()")
        same = browser.execute_script(HEIGHTS)
        assert own[0] > own[1]
        assert same == [own[0], own[0]]
        severe = [entry for entry in browser.get_log("browser") if entry["level"] != "INFO"]
        assert severe == []
    finally:
        browser.quit()


HEIGHTS = """
return ["map-whole", "map-least"].map((name) => {
  for (const doc of Bokeh.documents) {
    const found = doc.get_model_by_name(name);
    if (found) return found.y_range.end;
  }
});
"""
