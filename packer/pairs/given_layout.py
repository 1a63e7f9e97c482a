"""The layout that the options describe."""

from __future__ import annotations

from packer.errors import UsageError
from packer.pairs.layouts import Layout
from packer.pairs.pairing_rules import PairingRules
from packer.pairs.template import Template, without_files


def given_layout(rules: PairingRules) -> Layout | None:
    """Return the layout of the templates for images and labels; None if there are none."""
    if not rules.has_label:
        if not rules.image:
            raise UsageError("--field image: needs the template of its files, because no label shows the layout")
        image = Template(rules.image)
        return Layout("given by --image", image, without_files(image), exclusive=False)
    if rules.image and rules.label:
        return Layout("given by --image and --label", Template(rules.image), Template(rules.label), exclusive=False)
    return None
