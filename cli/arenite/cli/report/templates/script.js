"use strict";
(() => {
  const models = JSON.parse(document.getElementById("data").textContent);
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const printing = matchMedia("print");
  const drawn = [];
  const group = (number) => number.toLocaleString("en");

  function colour(name) {
    return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  }

  // The figures wear the page's colours.
  function paint(doc) {
    const ink = colour("--ink"), soft = colour("--soft"), rule = colour("--rule");
    const limit = colour("--limit"), paper = colour("--paper");
    for (const model of doc._all_models.values()) {
      if (model.type === "LinearAxis") {
        Object.assign(model, {
          axis_label_text_color: soft, major_label_text_color: soft, axis_line_color: rule,
          major_tick_line_color: rule, minor_tick_line_color: null,
          axis_label_text_font_style: "normal",
        });
      } else if (model.type === "Grid") {
        model.grid_line_color = rule;
      } else if (model.type === "BoxAnnotation" && model.name === "binding") {
        Object.assign(model, { fill_color: limit, fill_alpha: 0.14, line_color: limit, line_alpha: 0.8 });
      } else if (model.type === "Span") {
        Object.assign(model, { line_color: limit, line_width: 2 });
      } else if (model.type === "GlyphRenderer" && model.name === "load") {
        model.glyph.line_color = ink;
      } else if (model.type === "GlyphRenderer" && model.name === "rectangles") {
        for (const glyph of [model.glyph, model.hover_glyph, model.nonselection_glyph]) {
          if (glyph && glyph.line_color !== undefined) glyph.line_color = paper;
        }
      }
    }
  }

  function show(section, data, doc) {
    const strategy = section.querySelector("select.strategy").value;
    const colouring = data.colourings[section.querySelector("select.colouring").value];
    const source = doc.get_model_by_name("records");
    const offsets = data.offsets[strategy];
    const changed = Object.assign({}, source.data);
    changed.bottom = offsets;
    changed.top = offsets.map((offset, index) => offset + source.data.size[index]);
    changed.fill = colouring.groups.map((name) => colouring.colours[name]);
    source.data = changed;
    const height = data.heights[strategy];
    const range = doc.get_model_by_name("map").y_range;
    range.setv({ start: 0, end: Math.max(height, data.bound, 1) * data.margin });
    range.reset_end = range.end;
    const above = height > data.bound ? `, ${((height / data.bound - 1) * 100).toFixed(1)} % above the bound` : ", optimal";
    section.querySelector(".shown").textContent = `${strategy}: ${group(height)} B${above}`;
    const legend = section.querySelector(".legend");
    legend.replaceChildren(...colouring.names.map((name, index) => {
      const entry = document.createElement("span"), swatch = document.createElement("i");
      swatch.className = "swatch";
      swatch.style.background = colouring.colours[index];
      entry.append(swatch, name);
      return entry;
    }));
    tell(section, source);
  }

  function tell(section, source) {
    const facts = section.querySelector(".facts"), index = source.selected.indices[0];
    facts.hidden = index === undefined;
    if (facts.hidden) return;
    const of = (column) => source.data[column][index];
    const rows = {
      tensor: of("name"), type: of("about"),
      size: `${group(of("size"))} B at address ${group(of("bottom"))}`,
      lifetime: `steps [${of("left")}, ${of("right")})`,
      "made by": of("producer"), "read by": of("consumers"),
    };
    facts.replaceChildren(...Object.entries(rows).flatMap(([label, text]) => {
      const term = document.createElement("dt"), description = document.createElement("dd");
      term.textContent = label;
      description.textContent = text;
      return [term, description];
    }));
  }

  async function draw(section) {
    const data = models[section.dataset.index];
    if (!data) return;
    const target = section.querySelector(".canvas");
    await Bokeh.embed.embed_item(data.item, target.id);
    const doc = Bokeh.documents[Bokeh.documents.length - 1];
    const source = doc.get_model_by_name("records");
    drawn.push(doc);
    paint(doc);
    show(section, data, doc);
    if (matchMedia("(pointer: fine)").matches) {
      for (const model of doc._all_models.values()) if (model.type === "BoxZoomTool") model.active = true;
    }
    source.selected.change.connect(() => tell(section, source));
    for (const select of section.querySelectorAll("select")) {
      select.addEventListener("change", () => show(section, data, doc));
    }
    for (const button of section.querySelectorAll(".show")) {
      button.addEventListener("click", () => {
        section.querySelector("select.strategy").value = button.dataset.strategy;
        show(section, data, doc);
      });
    }
    section.dataset.drawn = "yes";
  }

  function sortBy(header) {
    const table = header.closest("table"), body = table.tBodies[0];
    const column = header.cellIndex;
    const down = header.getAttribute("aria-sort") === "ascending";
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    header.setAttribute("aria-sort", down ? "descending" : "ascending");
    const value = (row) => row.cells[column].dataset.value;
    const numbers = [...body.rows].every((row) => value(row) !== "" && isFinite(value(row)));
    const compare = (a, b) => numbers ? a - b : a.localeCompare(b);
    const rows = [...body.rows].sort((a, b) => compare(value(a), value(b)) * (down ? -1 : 1));
    body.append(...rows);
  }

  for (const button of document.querySelectorAll(".sortable th button")) {
    button.addEventListener("click", () => sortBy(button.closest("th")));
  }
  for (const preference of [dark, printing]) {
    preference.addEventListener("change", () => drawn.forEach(paint));
  }
  // One model after the other, so that the first is there at once.
  (async () => {
    for (const section of document.querySelectorAll("section.model")) {
      await draw(section);
      await new Promise((resolve) => setTimeout(resolve));
    }
    document.documentElement.dataset.ready = "yes";
  })();
})();
