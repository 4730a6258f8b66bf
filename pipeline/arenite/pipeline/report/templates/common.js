  const dark = matchMedia("(prefers-color-scheme: dark)");
  const printing = matchMedia("print");
  const drawn = [];

  function colour(name) {
    return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  }

  // The figures wear the page's colours.
  function paint(doc) {
    const ink = colour("--ink"), soft = colour("--soft"), rule = colour("--rule");
    const limit = colour("--limit"), paper = colour("--paper");
    for (const model of doc._all_models.values()) {
      if (model.type === "LinearAxis" || model.type === "LogAxis") {
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
      } else if (model.type === "GlyphRenderer" && model.name === "labels") {
        model.glyph.text_color = ink;
      } else if (model.type === "GlyphRenderer" && /predicted$|measured$/.test(model.name)) {
        const mark = colour(model.name.endsWith("measured") ? "--good" : "--accent");
        if (model.name.startsWith("line ")) model.glyph.line_color = mark;
        else model.glyph.fill_color = mark;
      } else if (model.type === "GlyphRenderer" && model.name === "rectangles") {
        for (const glyph of [model.glyph, model.hover_glyph, model.nonselection_glyph]) {
          if (glyph && glyph.line_color !== undefined) glyph.line_color = paper;
        }
      }
    }
  }

  // Where there is little room only the ends of a frontier are labelled.
  function spare(doc, width) {
    const labels = doc.get_model_by_name("labels");
    if (!labels || width >= 560) return;
    const source = labels.data_source, last = source.data.text.length - 1;
    const ends = (column) => Array.from(column).filter((_, index) => index === 0 || index === last);
    source.data = Object.fromEntries(
      Object.entries(source.data).map(([name, column]) => [name, ends(column)])
    );
    // The label of the whole program, to the right of its point, keeps its width on a log scale.
    const range = doc.get_model_by_name("frontier").x_range, most = Math.max(...source.data.x);
    const label = 100 / (width - 90);
    range.end = range.start * (most / range.start) ** (1 / (1 - label));
  }

  // Draw a figure in an element, in the colours of the page, and return its document.
  async function embed(item, id) {
    await Bokeh.embed.embed_item(item, id);
    const doc = Bokeh.documents[Bokeh.documents.length - 1];
    drawn.push(doc);
    paint(doc);
    spare(doc, document.getElementById(id).offsetWidth);
    if (matchMedia("(pointer: fine)").matches) {
      for (const model of doc._all_models.values()) if (model.type === "BoxZoomTool") model.active = true;
    }
    return doc;
  }

  // One figure after the other, so that the first is there at once.
  async function inTurn(items, draw) {
    for (const item of items) {
      await draw(item);
      await new Promise((resolve) => setTimeout(resolve));
    }
    document.documentElement.dataset.ready = "yes";
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
