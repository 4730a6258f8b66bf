  const models = JSON.parse(document.getElementById("data").textContent);
  const group = (number) => number.toLocaleString("en");

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
    explain(section.querySelector(".legend"), colouring);
    tell(section, source);
  }

  function explain(legend, colouring) {
    legend.replaceChildren(...colouring.names.map((name, index) => {
      const entry = document.createElement("span"), swatch = document.createElement("i");
      swatch.className = "swatch";
      swatch.style.background = colouring.colours[index];
      entry.append(swatch, name);
      return entry;
    }));
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
    const doc = await embed(data.item, target.id);
    const source = doc.get_model_by_name("records");
    show(section, data, doc);
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
    for (const plot of section.querySelectorAll(".extra")) {
      await embed(data[plot.dataset.figure], plot.id);
      if (plot.dataset.figure === "rows") {
        explain(section.querySelector(".rows-legend"), data.colourings.operator);
      }
    }
    section.dataset.drawn = "yes";
  }

  inTurn(document.querySelectorAll("section.model"), draw);
