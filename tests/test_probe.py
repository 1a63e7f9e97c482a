"""`packer probe` describes a folder, and `packer build` packs it correctly with the proposed configuration."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from conftest import RawFolder, errors_of, good, run, write_png
from handmade import chunk, encoded_as, png
from numpy.typing import NDArray

from packer.plan.sample import spread_indices
from readers import open_dataset

pytestmark = pytest.mark.usefixtures("in_process")

COLOURS = np.array([[0, 0, 0], [128, 64, 128], [70, 130, 180], [220, 20, 60]], np.uint8)
TRUTH = np.arange(64, dtype=np.uint8).reshape(8, 8) % 4


def palette_png(index: NDArray[np.uint8], colours: NDArray[np.uint8]) -> bytes:
    return png(index, 8, 3, chunk(b"PLTE", colours.tobytes()))


def picture(number: int) -> NDArray[np.uint8]:
    return np.random.default_rng(number).integers(0, 256, (8, 8, 3), np.uint8)


def folder(
    root: Path, *labels: bytes | NDArray[Any], image: str = "images/{}.png", label: str = "labels/{}.png"
) -> Path:
    """Make a raw folder with the given labels, as files or as pixels."""
    for number, content in enumerate(labels):
        write_png(root / image.format(number), picture(number))
        path = root / label.format(number)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else encoded(content))
    return root


def encoded(pixels: NDArray[Any], suffix: str = ".png") -> bytes:
    return encoded_as(suffix, pixels)


def probed(raw: Path, *options: object) -> Any:
    return json.loads(good("probe", "--json", *options, raw).stdout)


def packed_by_proposal(raw: Path, tmp_path: Path, *options: object) -> list[NDArray[Any]]:
    """Return the labels after `packer probe --write` and `packer build --config`, as indices."""
    config = tmp_path / "packer.toml"
    good("probe", "--write", config, *options, raw)
    good("build", "--quiet", "--config", config, raw, tmp_path / "out")
    return [label.numpy() for _, label in open_dataset(tmp_path / "out", split="all", label="index")]


def test_gray_numbers_are_classes(tmp_path: Path) -> None:
    raw = folder(tmp_path / "raw", TRUTH, TRUTH[::-1])
    answer = probed(raw)
    assert answer["labels"]["values"] == {"0": 32, "1": 32, "2": 32, "3": 32}
    assert answer["images"] == {"PNG RGB, 8 bits": 2}
    assert answer["labels"]["kinds"] == {"PNG gray, 8 bits": 2}
    assert answer["sizes"] == {"8x8": 2}
    assert answer["reading"]["codec"] == "index"
    labels = packed_by_proposal(raw, tmp_path)
    assert np.array_equal(labels[0], TRUTH)
    assert np.array_equal(labels[1], TRUTH[::-1])


def test_255_is_ignored_among_classes_and_a_class_next_to_0_alone(tmp_path: Path) -> None:
    with_border = np.where(TRUTH == 3, 255, TRUTH).astype(np.uint8)
    assert "ignore = [255]" in probed(folder(tmp_path / "raw", with_border))["config"]
    assert np.array_equal(packed_by_proposal(tmp_path / "raw", tmp_path)[0], with_border)
    binary = probed(folder(tmp_path / "binary", (TRUTH > 1) * np.uint8(255)))
    assert binary["reading"]["codec"] == "binary"
    assert "ignore" not in binary["config"]


def test_soft_edges_are_a_threshold(tmp_path: Path) -> None:
    soft = np.zeros((64, 64), np.uint8)
    soft[32:] = 255
    soft[31, :40] = np.arange(100, 140)
    folder(tmp_path / "raw", soft)
    raw = tmp_path / "raw"
    write_png(raw / "images/0.png", np.random.default_rng(0).integers(0, 256, (64, 64, 3), np.uint8))
    labels = packed_by_proposal(raw, tmp_path)
    assert np.array_equal(labels[0], soft >= 128)


def test_jpeg_labels_are_binary_with_a_threshold(tmp_path: Path) -> None:
    """Compression blurs them, so their many gray values are not classes."""
    truth = np.zeros((16, 16), np.uint8)
    truth[4:12, 4:12] = 255
    raw = folder(tmp_path / "raw", encoded(truth, ".jpg"), label="labels/{}.jpg")
    write_png(raw / "images/0.png", np.random.default_rng(0).integers(0, 256, (16, 16, 3), np.uint8))
    answer = probed(raw)
    assert len(answer["labels"]["values"]) > 2
    assert answer["reading"]["codec"] == "binary"
    assert 'threshold = "128"' in answer["config"] or "threshold = 128" in answer["config"]
    (label,) = packed_by_proposal(raw, tmp_path)
    assert np.array_equal(label, truth >= 128)


def test_rgb_labels_are_classes_by_colour(tmp_path: Path) -> None:
    raw = folder(tmp_path / "raw", COLOURS[TRUTH])
    answer = probed(raw)
    assert answer["reading"]["codec"] == "colour"
    assert answer["labels"]["colours"] == {"#000000": 16, "#804080": 16, "#4682b4": 16, "#dc143c": 16}
    (label,) = packed_by_proposal(raw, tmp_path)
    assert len({tuple(np.unique(label[value == TRUTH])) for value in range(4)}) == 4


def test_a_class_table_in_the_folder_is_tried(tmp_path: Path) -> None:
    raw = folder(tmp_path / "raw", COLOURS[TRUTH])
    rows = [f"c{n} {r} {g} {b}" for n, (r, g, b) in enumerate(COLOURS.tolist())]
    (raw / "label_colors.txt").write_text("\n".join(["name r g b", *rows]))
    assert "4 of 4 colours are in label_colors.txt" in " ".join(probed(raw)["reading"]["why"])
    (label,) = packed_by_proposal(raw, tmp_path)
    assert np.array_equal(label, TRUTH)


def test_palettes_that_differ_are_reported_with_their_files(tmp_path: Path) -> None:
    orders = ([0, 1, 2, 3], [1, 0, 3, 2])
    labels = [palette_png(np.argsort(order).astype(np.uint8)[TRUTH], COLOURS[list(order)]) for order in orders]
    raw = folder(tmp_path / "raw", *labels)
    answer = probed(raw)
    assert answer["labels"]["kinds"] == {"PNG palette, 8 bits": 2}
    assert "#000000 is index 0 in labels/0.png, and index 1 in labels/1.png" in answer["labels"]["palettes_differ"]
    assert any("palettes differ" in doubt for doubt in answer["to_decide"])


def test_a_preset_is_recognised_by_its_folders_and_values(tmp_path: Path) -> None:
    labels = [TRUTH + 1, TRUTH + 4]
    raw = folder(tmp_path / "raw", *labels, image="Train/Urban/images_png/{}.png", label="Train/Urban/masks_png/{}.png")
    answer = probed(raw)
    assert {"name": "loveda", "pairs": 2, "share": 1.0} in answer["presets"]
    assert 'preset = "loveda"' in answer["config"]
    packed = packed_by_proposal(raw, tmp_path)
    assert [np.array_equal(label, truth - 1) for label, truth in zip(packed, labels, strict=True)] == [True, True]


def test_classes_guessed_from_a_sample_are_a_question_and_from_all_labels_not(tmp_path: Path) -> None:
    raw = folder(tmp_path / "raw", TRUTH, TRUTH[::-1])
    rare = "only 1 of 2 labels were decoded, so rare classes may be missing: --sample all finds them"
    assert rare in probed(raw, "--sample", 1)["to_decide"]
    assert not any("rare" in doubt for doubt in probed(raw)["to_decide"])
    binary = folder(tmp_path / "binary", *[(TRUTH > 1).astype(np.uint8)] * 2)
    assert not any("rare" in doubt for doubt in probed(binary, "--sample", 1)["to_decide"])


def test_the_page_explains_why_a_preset_fits(tmp_path: Path) -> None:
    layout = {"image": "Train/Urban/images_png/{}.png", "label": "Train/Urban/masks_png/{}.png"}
    by_templates = run("probe", folder(tmp_path / "loveda", TRUTH + 1, **layout)).stdout
    assert "loveda knows 100.00 % of the label pixels, and its templates find 1 pair\n" in by_templates
    colours = np.array([[0, 0, 0], [128, 0, 0], [0, 128, 0], [128, 128, 0]], np.uint8)
    by_colours = run("probe", folder(tmp_path / "voc", palette_png(TRUTH, colours))).stdout
    assert "voc knows 100.00 % of the label pixels, all in its colours\n" in by_colours


def test_templates_are_proposed_if_no_layout_fits(tmp_path: Path) -> None:
    raw = folder(tmp_path / "raw", TRUTH, TRUTH, image="data/{}.png", label="data/{}_mask.png")
    answer = probed(raw)
    assert 'label = "data/{key}_mask"' in answer["config"]
    assert "unknown; these templates" in answer["layout"]
    assert len(packed_by_proposal(raw, tmp_path)) == 2


def test_sizes_depth_and_missing_partners_get_a_first_setting(tmp_path: Path) -> None:
    raw = folder(tmp_path / "raw", TRUTH, TRUTH[:5])
    write_png(raw / "images/1.png", picture(1)[:5])
    write_png(raw / "images/2.png", picture(2))
    deep = cv2.imencode(".png", picture(3).astype(np.uint16) * 257)[1].tobytes()
    (raw / "images/3.png").write_bytes(deep)
    write_png(raw / "labels/3.png", TRUTH)
    answer = probed(raw)
    assert answer["missing"] == ["images/2.png: has no label"]
    for line in ('missing = "skip"', 'size = "native"', 'image-range = "0,65535"'):
        assert line in answer["config"]
    assert len(answer["to_decide"]) >= 3
    page = run("probe", raw)
    assert "decide    16-bit images" in page.stdout


def test_bad_and_odd_pairs_and_copies_are_reported(tmp_path: Path) -> None:
    raw = folder(tmp_path / "raw", TRUTH, TRUTH, TRUTH, image="train/images/{}.png", label="train/masks/{}.png")
    write_png(raw / "val/images/7.png", picture(0))
    write_png(raw / "val/masks/7.png", TRUTH)
    write_png(raw / "train/masks/1.png", TRUTH[:4])
    data = (raw / "train/masks/2.png").read_bytes()
    (raw / "train/masks/2.png").write_bytes(data[:-20])
    answer = probed(raw)
    assert answer["copies"] == [["train/0", "val/7"]]
    assert [item["pairs"] for item in answer["findings"] if item["kind"] == "leakage"] == [["train/0", "val/7"]]
    assert any("train/images/1.png is 8x8, its label train/masks/1.png is 4x8" in reason for reason in answer["bad"])
    assert any(reason.startswith("train/masks/2.png: ") for reason in answer["bad"])
    page = run("probe", raw).stdout
    assert "odd       the same file: train/0 = val/7" in page
    assert "odd       2 pairs cannot be packed without a change:" in page


def test_a_folder_without_pairs_is_described_and_an_error(tmp_path: Path) -> None:
    write_png(tmp_path / "raw" / "a.png", TRUTH)
    answer = run("probe", tmp_path / "raw")
    assert answer.exit_code == 1
    assert "folder    " in answer.stdout
    assert "fits no known layout" in answer.stderr


def test_an_existing_file_is_not_overwritten(tmp_path: Path) -> None:
    raw, config = folder(tmp_path / "raw", TRUTH), tmp_path / "packer.toml"
    config.write_text("mine")
    assert run("probe", "--write", config, raw).exit_code == 2
    assert config.read_text() == "mine"


def test_a_sample_of_one_is_the_first_pair(raw_folder: RawFolder) -> None:
    assert probed(raw_folder.path, "--sample", 1)["labels"]["decoded"] == 1
    assert probed(raw_folder.path, "--sample", "all")["labels"]["decoded"] == 32
    assert spread_indices(100, 3) == [0, 50, 99]


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    raw = folder(tmp_path / "raw", TRUTH, TRUTH)
    for number in range(2):
        (raw / f"images/{number}.png").unlink()
        os.mkfifo(raw / f"images/{number}.png")
    assert probed(raw)["bad"] == [f"images/{number}.png: is not a regular file" for number in range(2)]


def test_a_broken_link_is_a_bad_pair(tmp_path: Path) -> None:
    raw = folder(tmp_path / "raw", TRUTH, TRUTH)
    (raw / "labels/1.png").unlink()
    (raw / "labels/1.png").symlink_to(tmp_path / "gone.png")
    assert probed(raw)["bad"] == ["labels/1.png: cannot be read (No such file or directory)"]


def table_of_colours(path: Path) -> None:
    rows = [f"c{n},{r},{g},{b}" for n, (r, g, b) in enumerate(COLOURS.tolist())]
    path.write_text("\n".join(["name,r,g,b", *rows]))


def refused(raw: Path, tmp_path: Path) -> str:
    """Return the error of a build with the proposed configuration."""
    (tmp_path / "packer.toml").write_text(probed(raw)["config"])
    return errors_of(2, "build", "--quiet", "--config", tmp_path / "packer.toml", raw, tmp_path / "out")


def test_a_proposal_that_a_build_refuses_is_a_question(tmp_path: Path) -> None:
    """JPEG labels cannot be read by a table of colours, so every pair would fail."""
    truth = encoded((TRUTH > 1) * np.uint8(255), ".jpg")
    raw = folder(tmp_path / "raw", truth, truth, label="masks/{}.jpg")
    (raw / "class_dict.csv").write_text("name,r,g,b\nback,0,0,0\nfront,255,255,255\n")
    assert "a build refuses this proposal: every pair is bad" in probed(raw)["to_decide"][0]
    wrote = run("probe", "--write", tmp_path / "packer.toml", raw)
    assert "next: decide what it asks (1 line), then" in wrote.stderr


def test_every_reject_of_a_build_is_found_by_the_probe(tmp_path: Path) -> None:
    stray = COLOURS[TRUTH].copy()
    stray[3, 3] = 9
    see_through = cv2.imencode(".png", np.dstack([COLOURS[TRUTH][..., ::-1], TRUTH]))[1].tobytes()
    deep, lossy = encoded(TRUTH.astype(np.uint16)), encoded(COLOURS[TRUTH], ".jpg")
    raw = folder(tmp_path / "raw", COLOURS[TRUTH], deep, lossy, stray, see_through, COLOURS[TRUTH])
    (raw / "images/5.png").write_bytes(cv2.imencode(".png", np.dstack([picture(5), TRUTH]))[1].tobytes())
    table_of_colours(raw / "class_dict.csv")
    answer = probed(raw)
    names = sorted(reason.split(":")[0] for reason in answer["bad"])
    assert names == ["images/5.png", *(f"labels/{number}.png" for number in (1, 2, 3, 4))]
    assert '5 bad pairs were found: fix them, or leave them out with on-bad = "skip"' in answer["to_decide"]
    (tmp_path / "packer.toml").write_text(answer["config"])
    options = ("--config", tmp_path / "packer.toml", "--on-bad", "skip")
    assert run("build", "--quiet", *options, raw, tmp_path / "out").exit_code == 0
    assert len(open_dataset(tmp_path / "out", split="all")) == 1


def test_labels_that_were_not_decoded_do_not_count_and_empty_files_do_not_count_as_copies(tmp_path: Path) -> None:
    raw = folder(tmp_path / "raw", TRUTH, TRUTH, TRUTH, b"")
    for number in range(2):
        (raw / f"images/{number}.png").write_bytes(b"")
    assert probed(raw)["copies"] == []
    assert probed(raw)["labels"]["decoded"] == 3
    assert "3 of 4 were decoded" in run("probe", raw).stdout


def test_a_rare_file_type_is_decoded_although_the_sample_is_small(tmp_path: Path) -> None:
    raw = folder(tmp_path / "raw", TRUTH, COLOURS[TRUTH], TRUTH)
    assert probed(raw, "--sample", 1)["labels"]["decoded"] == 2


def test_labels_that_are_rgb_and_palettes_are_read_by_colour(tmp_path: Path) -> None:
    raw = folder(tmp_path / "raw", COLOURS[TRUTH], palette_png((3 - TRUTH).astype(np.uint8), COLOURS[::-1]))
    answer = probed(raw)
    assert answer["reading"]["codec"] == "colour"
    assert any("labels are RGB, palette" in doubt for doubt in answer["to_decide"])
    first, second = packed_by_proposal(raw, tmp_path)
    assert np.array_equal(first, second)


def test_classes_that_would_be_renumbered_stop_the_build(tmp_path: Path) -> None:
    raw = folder(tmp_path / "ade20k", np.array([0, 7, 41, 120], np.uint8)[TRUTH])
    doubts = probed(raw)["to_decide"]
    assert "value 7 becomes class 1; to keep the values unchanged, use --classes 121 or a preset" in doubts[0]
    assert any("knows all these values" in doubt and "ade20k" in doubt for doubt in doubts)
    assert "to decide: classes are renumbered" in refused(raw, tmp_path)


def test_rival_labels_stop_the_build(tmp_path: Path) -> None:
    raw = folder(tmp_path / "raw", TRUTH, TRUTH, image="{}.png", label="{}_1stHO.png")
    for number in range(2):
        write_png(raw / f"{number}_2ndHO.png", TRUTH)
    assert "label = '{key}_1stHO', label = '{key}_2ndHO'?" in probed(raw)["to_decide"][0]
    assert "to decide: which files are the labels" in refused(raw, tmp_path)


def test_a_decoy_with_a_usual_name_stops_the_build(tmp_path: Path) -> None:
    names = {"image": "images/{}_training.png", "label": "mask/{}_training_mask.png"}
    raw = folder(tmp_path / "drive", TRUTH, TRUTH, **names)
    for number in range(2):
        write_png(raw / f"1st_manual/{number}_manual1.png", TRUTH)
    assert "label = '1st_manual/{key}_manual1'?" in refused(raw, tmp_path)
    raw = folder(tmp_path / "predicted", TRUTH, TRUTH, image="{}.png", label="label{}.png")
    for number in range(2):
        write_png(raw / f"out{number}.png", picture(number))
    assert "which files are the images" in refused(raw, tmp_path)


def test_predictions_do_not_count_as_rivals_of_labels(tmp_path: Path) -> None:
    raw = folder(tmp_path / "raw", TRUTH, TRUTH)
    for number in range(2):
        write_png(raw / f"predictions/{number}.png", TRUTH)
    assert "decide =" not in probed(raw)["config"]


def test_a_usual_palette_does_not_name_the_classes(tmp_path: Path) -> None:
    colours = np.array([[0, 0, 0], [128, 0, 0], [0, 128, 0]], np.uint8)
    answer = probed(folder(tmp_path / "raw", palette_png(np.minimum(TRUTH, 2), colours)))
    assert "aeroplane" not in answer["config"]
    assert any("knows all these values" in doubt and "voc" in doubt for doubt in answer["to_decide"])


def test_class_tables_that_do_not_fit_are_named(tmp_path: Path) -> None:
    raw = folder(tmp_path / "raw", COLOURS[TRUTH])
    (raw / "class.csv").write_text("name,r,g,b\nroad,0,0,0\nsky,1,2,3\n")
    assert "the class table class.csv knows only 25.00 % of the label pixels" in probed(raw)["to_decide"]
    (raw / "class.csv").write_text("name,r,g,b\nroad,0,0\n")
    assert any(doubt.startswith("class.csv cannot be read as a class table") for doubt in probed(raw)["to_decide"])
    table_of_colours(raw / "class.csv")
    assert "4 of 4 colours are in class.csv" in " ".join(probed(raw)["reading"]["why"])


def test_the_share_of_an_unknown_colour_is_of_all_pixels(tmp_path: Path) -> None:
    stray = COLOURS[TRUTH].copy()
    stray[0, 0] = 9
    raw = folder(tmp_path / "raw", stray)
    table_of_colours(raw / "class_dict.csv")
    assert any("in no class: #090909 (1.56 %)" in doubt for doubt in probed(raw)["to_decide"])


def test_an_image_and_a_label_without_a_key_are_explained(tmp_path: Path) -> None:
    write_png(tmp_path / "raw/image.png", picture(0))
    write_png(tmp_path / "raw/labels.png", TRUTH)
    assert "image.png and labels.png share no key in their names" in run("probe", tmp_path / "raw").stderr


def test_a_pack_is_not_a_raw_folder(raw_folder: RawFolder, tmp_path: Path) -> None:
    good("build", "--quiet", raw_folder.path, tmp_path / "out")
    assert "is a packed data set, not a raw folder; packer info" in errors_of(1, "probe", tmp_path / "out")


@pytest.mark.shared
@pytest.mark.parametrize(
    ("path", "pairs", "line"),
    [
        ("labelme_voc/examples/semantic_segmentation/data_dataset_voc", {"all": 3}, "data_dataset_voc/class_names.txt"),
        ("mmseg_pseudo/tests/data/pseudo_dataset", {"train": 4, "val": 1}, 'label-codec = "index"'),
        ("unet_membrane/data/membrane", {"train": 30}, 'label-codec = "binary"'),
        ("ade20k_sample/sampleData", {"all": 3}, 'size = "native"'),
        ("datumaro_layouts/tests/assets/camvid_dataset", {"test": 2, "train": 1, "val": 1}, 'name = "Animal"'),
        ("camvid_keras_example/test/example_dataset", {"test": 3, "train": 5}, "images_prepped_{split}/{key}"),
    ],
)
def test_public_sets_are_understood(
    shared_data: Path, tmp_path: Path, path: str, pairs: dict[str, int], line: str
) -> None:
    answer = probed(shared_data / path)
    assert answer["pairs"] == pairs
    assert line in answer["config"]
    (tmp_path / "packer.toml").write_text(answer["config"])
    options = ("--quiet", "--config", tmp_path / "packer.toml", "--label-codec", answer["reading"]["codec"])
    built = run("build", *options, shared_data / path, tmp_path / "out")
    asked = path.partition("/")[0] in ("ade20k_sample", "unet_membrane", "mmseg_pseudo")
    assert ("decide =" in answer["config"]) == asked
    assert built.exit_code == 2 * asked, built.stderr


def test_build_and_probe_give_one_advice_on_masks(tmp_path: Path) -> None:
    """`--ignore` would take the foreground away from masks of 0 and 255."""
    raw = folder(tmp_path / "raw", *[np.where(TRUTH > 0, 255, 0).astype(np.uint8)] * 2)
    assert 'label-codec = "binary"' in probed(raw)["config"]
    for options in ((), ("--classes", "1")):
        refused = run("build", *options, raw, tmp_path / "out").stderr
        assert "--label-codec binary" in refused
        assert "--ignore" not in refused


def test_gray_labels_with_transparent_pixels_are_a_question(tmp_path: Path) -> None:
    """Probe counted 765 colours, and asked for a table of them; a build refuses these labels with any table."""
    gray_with_alpha = np.stack([TRUTH, TRUTH * 9], axis=2).reshape(8, 16)
    raw = folder(tmp_path / "raw", *[png(gray_with_alpha, 8, 4)] * 2)
    words = "gray with an alpha channel, and some pixels are transparent; save it as gray alone"
    assert f"a label is {words}" in probed(raw)["to_decide"]
    assert "gray with an alpha channel" in run("build", "--classes", 4, raw, tmp_path / "out").stderr


def test_build_and_probe_give_one_advice_on_soft_edges(tmp_path: Path) -> None:
    """The build advised `--classes 255 --ignore 255`, which takes the foreground away."""
    mask = np.zeros((64, 64), np.uint8)
    mask[20:40, 20:40] = 255
    mask[19, 20:40] = np.arange(20, 220, 10)
    raw = folder(tmp_path / "raw", mask, mask)
    assert 'label-codec = "binary"\nthreshold = 128' in probed(raw)["config"]
    refused = run("build", raw, tmp_path / "out").stderr
    assert "perhaps --label-codec binary --threshold 128 (packer probe" in refused
    assert "--ignore" not in refused


@pytest.mark.parametrize(
    ("values", "proposed", "advised"),
    [
        ([255], 'label-codec = "binary"', "every pixel is 255"),
        ([0], 'label-codec = "binary"', "--label-codec binary"),
        ([0, 128, 255], "values = [255]", "--classes 0,128,255,"),
        ([0, 1, 2, 255], "ignore = [255]", "--classes 3 --ignore 255"),
    ],
)
def test_255_has_one_meaning_for_build_and_probe(
    tmp_path: Path, values: list[int], proposed: str, advised: str
) -> None:
    label = np.resize(np.array(values, np.uint8), TRUTH.shape)
    raw = folder(tmp_path / "raw", label, label)
    answer = probed(raw)
    assert proposed in answer["config"]
    assert advised in run("build", raw, tmp_path / "out").stderr
    assert (values == [255]) == any("every pixel is 255" in question for question in answer["to_decide"])


def test_presets_are_offered_with_evidence_only(tmp_path: Path) -> None:
    """Values from 0 to 10 are known to all presets of street scenes, and brain scans have them, too."""
    values = np.arange(TRUTH.size, dtype=np.uint8).reshape(TRUTH.shape) % 12
    for name, is_offered in (("brain", False), ("CamVid", True)):
        raw = folder(tmp_path / name, values, values)
        assert any("camvid-11" in doubt for doubt in probed(raw)["to_decide"]) == is_offered
        assert ("--preset camvid-11" in run("build", raw, tmp_path / "out").stderr) == is_offered
        assert not any("bdd100k" in doubt for doubt in probed(raw)["to_decide"])


def test_numbers_for_which_the_table_has_colours_are_named(tmp_path: Path) -> None:
    raw = folder(tmp_path / "raw", TRUTH, TRUTH)
    (raw / "classes.csv").write_text("name,r,g,b\nroad,128,64,128\nsky,70,130,180\n")
    words = "he labels hold numbers, and the class table has colours only: add the values of the classes"
    assert words in run("build", raw, tmp_path / "out").stderr
    assert any(words in doubt for doubt in probed(raw)["to_decide"])


def test_pairs_that_the_proposal_does_not_have_are_a_question(tmp_path: Path) -> None:
    for name, image, label in (("a", "images", "labels"), ("b", "photos", "masks"), ("c", "rgb", "gt")):
        folder(
            tmp_path / "raw",
            TRUTH,
            TRUTH,
            image=f"{name}/{image}/{name}{{}}.png",
            label=f"{name}/{label}/{name}{{}}.png",
        )
    answer = probed(tmp_path / "raw")
    assert answer["to_decide"][0].startswith(
        "the proposal has 2 pairs, and other pictures could be pairs, too: image = "
    )
    assert "to decide: the proposal has 2 pairs" in refused(tmp_path / "raw", tmp_path)


def test_a_picture_left_out_of_a_folder_of_pairs_is_a_question(tmp_path: Path) -> None:
    for end in ("", "2"):
        folder(tmp_path / "raw", TRUTH, image=f"image{end}.png", label=f"labels{end}.png")
    assert "other pictures in the same folders are left out: image.png, labels.png" in refused(
        tmp_path / "raw", tmp_path
    )


def test_split_lists_that_do_not_fit_together_are_a_question(tmp_path: Path) -> None:
    """They became a random split of 80/10/10."""
    raw = folder(tmp_path / "raw", *[TRUTH] * 12, image="JPEGImages/{}.png", label="SegmentationClass/{}.png")
    lists = raw / "ImageSets/Segmentation"
    lists.mkdir(parents=True)
    for name, numbers in (("train", range(6)), ("val", range(6, 9)), ("test", range(9, 12)), ("trainval", range(10))):
        (lists / f"{name}.txt").write_text("".join(f"{number}\n" for number in numbers))
    answer = probed(raw)
    assert "\nsplit =" not in answer["config"]
    assert "lists = 'ImageSets/Segmentation/{split:test|train|val}.txt'" in answer["to_decide"][0]
    assert "to decide: use the split lists of the folder" in refused(raw, tmp_path)
    (lists / "trainval.txt").unlink()
    assert probed(raw)["pairs"] == {"test": 3, "train": 6, "val": 3}


def test_pairs_that_are_in_no_list_are_a_question_of_their_own(tmp_path: Path) -> None:
    """The question named the templates of the proposal as other ones, and asked whether one layout fits all."""
    raw = folder(tmp_path / "raw", *[TRUTH] * 6)
    (raw / "splits").mkdir()
    (raw / "splits/train.txt").write_text("0\n1\n2\n")
    (raw / "splits/val.txt").write_text("3\n")
    words = "are in no list (2 pairs); are they left out on purpose?"
    assert [words in question for question in probed(raw)["to_decide"]] == [True, False]
    assert words in refused(raw, tmp_path)


def test_the_names_of_a_palette_are_those_of_a_labelmap_or_a_question(tmp_path: Path) -> None:
    colours = np.array([[0, 0, 0], [10, 200, 30], [250, 3, 7], [9, 9, 99]], np.uint8)
    names = {"image": "JPEGImages/{}.png", "label": "SegmentationClass/{}.png"}
    raw = folder(tmp_path / "raw", *[palette_png(TRUTH, colours)] * 2, **names)
    assert "to decide: what are the names of the classes?" in refused(raw, tmp_path)
    lines = [f"{name}:{','.join(map(str, colour))}::" for name, colour in zip("abcd", colours.tolist(), strict=True)]
    (raw / "labelmap.txt").write_text("\n".join(lines))
    assert "what are the names" not in str(probed(raw)["to_decide"])
