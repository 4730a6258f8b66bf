"""The stages and the schedule of a system, as program files state them."""

from collections.abc import Mapping, Sequence
from typing import Any

from arenite.planner.programs import Section, SectionKind, Stage, System


def system_fields(system: System, outputs: Sequence[str]) -> dict[str, Any]:
    """Return the fields of the root table of a program.

    Args:
        outputs: Names of the outputs of the program.
    """
    output_numbers = {name: number for number, name in enumerate(outputs)}
    stage_numbers = {stage.name: number for number, stage in enumerate(system.stages)}
    sections = list(system.schedule.sections())
    numbers = {id(section): number for number, section in enumerate(sections)}
    return {
        "stages": [
            {
                "name": each.name, "turns": each.num_steps, "inputs": each.num_inputs,
                "outputs": each.num_outputs,
                "reads": [output_numbers[name] for name in each.reads],
                "keeps": [output_numbers[name] for name in each.keeps],
            }
            for each in system.stages
        ],
        "schedule": [
            {
                "kind": str(section.kind),
                "parts": [
                    stage_numbers[part] if isinstance(part, str) else -1 - numbers[id(part)]
                    for part in section.parts
                ],
            }
            for section in sections
        ],
    }  # fmt: skip


def system_of(root: Mapping[str, Any]) -> System | None:
    """Return the system of a program that the core has accepted; None for a single model."""
    stages = root.get("stages") or ()
    if not stages:
        return None
    outputs = [port["name"] for port in root["outputs"]]

    def section(number: int) -> Section:
        stated = root["schedule"][number]
        return Section(
            SectionKind(stated["kind"]),
            tuple(
                stages[part]["name"] if part >= 0 else section(-1 - part)
                for part in stated.get("parts") or ()
            ),
        )

    return System(
        tuple(
            Stage(
                each["name"], each["turns"], each["inputs"], each["outputs"],
                tuple(outputs[number] for number in each.get("reads") or ()),
                tuple(outputs[number] for number in each.get("keeps") or ()),
            )
            for each in stages
        ),
        section(0),
    )  # fmt: skip
