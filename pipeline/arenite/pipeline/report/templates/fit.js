  const figures = JSON.parse(document.getElementById("data").textContent);
  const plots = [...document.querySelectorAll(".plot")];
  const ranges = new Map();

  inTurn(plots, async (target) => {
    const doc = await embed(figures[target.dataset.figure], target.id);
    const map = doc.get_model_by_name(target.id);
    if (target.dataset.height) ranges.set(map.y_range, map.y_range.end);
    target.dataset.drawn = "yes";
  });

  document.querySelector(".same")?.addEventListener("change", (event) => {
    const largest = Math.max(...ranges.values());
    for (const [range, own] of ranges) {
      range.setv({ start: 0, end: event.target.checked ? largest : own });
      range.reset_end = range.end;
    }
  });
