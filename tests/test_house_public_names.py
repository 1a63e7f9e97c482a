"""The public names of `readers`, with all parameters: whoever changes one here changes programs of other people."""

from __future__ import annotations

import inspect
import textwrap

import pytest
from conftest import python

import readers

SURFACE = """
ArrowSegDataset(root, split=None, label=None, transform=None, verify=None, staged=True, fields=None,
        labelled=None, form=None, cache=None, cache_bytes=None, generation=None, fold=None, offline=None)
Augmentation(crop=None, flip=False, turn=False, colour=None, normalize=False, dtype=None)
    .colour
    .crop
    .cut(sides)
    .dtype
    .flip
    .normalize
    .tone(fields, training)
    .turn
CenterCrop(size, pad=0)
    .pad
Colour(brightness=0, contrast=0, saturation=0, channels=0, gray=0, middle=0.5)
    .brightness
    .channels
    .check(channels)
    .contrast
    .drawn(numbers, channels)
    .gray
    .middle
    .saturation
    .weights(rows, runs, channels)
DamagedError(ReadError)
DeviceBatches(batches, device, finish, ahead, seed)
    .load_state_dict(state)
    .receipt()
    .set_epoch(epoch)
    .source
    .state_dict()
Hdf5SegDataset(root, split=None, label=None, transform=None, verify=None, staged=True, fields=None,
        labelled=None, form=None, cache=None, cache_bytes=None, generation=None, fold=None, offline=None)
LmdbSegDataset(root, split=None, label=None, transform=None, verify=None, staged=True, fields=None,
        labelled=None, form=None, cache=None, cache_bytes=None, generation=None, fold=None, offline=None)
Loader(batches, order, ahead, output, pin_memory, memory, facts)
    .load_state_dict(state)
    .padding
    .receipt()
    .set_epoch(epoch)
    .state_dict()
    .steps
    .threads
    .to(device='cuda', *, dtype=None, normalize=False, channels_last=False, label_dtype=None, augment=None,
        ahead=1)
ManifestError(DamagedError)
MixedOrder(dataset, mix, *, mix_end='labelled', shuffle=True, seed=0, rank=0, world_size=1, drop_last=False,
        pad=None)
    .begin()
    .coming()
    .consumed
    .end
    .epoch
    .finish()
    .load_state_dict(state)
    .padding
    .rank
    .receive(consumed)
    .seed
    .set_epoch(epoch)
    .shuffle
    .state_dict(batches=None)
    .whole()
    .world_size
MixedPacks(packs, weights, classes, changes, end)
    .loader(batch_size, *, shuffle=False, seed=0, crop=None, flip=False, turn=False, colour=None,
        normalize=False, dtype=None, rank=0, world_size=1, drop_last=False, pad=None, labels=None,
        output='torch', pin_memory=None, threads='auto', ahead=3, drop_behind=False, partners=0)
    .mean
    .receipt()
    .std
NoPackError(ReadError, FileNotFoundError)
NpySegDataset(root, split=None, label=None, transform=None, verify=None, staged=True, fields=None,
        labelled=None, form=None, cache=None, cache_bytes=None, generation=None, fold=None, offline=None)
Order(rows, *, shuffle=True, seed=0, rank=0, world_size=1, drop_last=False, pad=None, weights=None)
    .begin()
    .coming()
    .finish()
    .load_state_dict(state)
    .padding
    .receive(consumed)
    .set_epoch(epoch)
    .state_dict(consumed=None)
    .whole()
Place(system, transform, no_data='')
    .affine
    .at(*index)
    .crs
    .kind
    .matrix
    .nodata
    .part(start, step=())
    .spacing
PredictionFile(path, size, dtype, place=None, *, bands=None, fill=0, classes=None, nodata=None, rgb=False)
    .write(pixels, *start)
RandomCrop(size, pad=0, scale=(1, 1), holds=None, holds_rows='share', most=1, foreground=0)
    .follows_classes
    .foreground
    .holds
    .most
    .scale
    .scales
ReadError(Exception)
RequestError(ReadError, ValueError)
Sample(image, label)
    .image
    .label
SegDataset(root, split=None, label=None, transform=None, verify=None, staged=True, fields=None, labelled=None,
        form=None, cache=None, cache_bytes=None, generation=None, fold=None, offline=None)
    .class_weights(weighting='median')
    .classes
    .fields
    .fold
    .folds
    .gather(indices, lease)
    .index(key)
    .key(index)
    .label
    .labelled
    .labelled_rows
    .loader(batch_size, *, shuffle=False, seed=0, crop=None, flip=False, turn=False, colour=None,
        normalize=False, dtype=None, on='cpu', rank=0, world_size=1, drop_last=False, pad=None, labels=None,
        output='torch', pin_memory=None, threads='auto', ahead=3, drop_behind=False, mix=None,
        mix_end='labelled', partners=0, windows=None, weights=None)
    .manifest
    .mean
    .mean_and_deviation(field)
    .percentiles(ranks=(0.5, 50.0, 99.5), field=None, foreground=False)
    .place(index, whole=False)
    .receipt()
    .row_weights(weights)
    .sheet(n=24, seed=0, rows=None, field=None, opacity=None, classes=None, outlines=False, window=None,
        colour_blind=False)
    .show(index, field=None, opacity=None, classes=None, size=None, outlines=False, window=None,
        colour_blind=False)
    .size(index)
    .split
    .splits
    .statistics
    .std
    .storage
    .unlabelled_rows
    .window(index, start, size)
    .windows(index, size, overlap=0)
SlidingWindows(size, overlap=0, scale=1, flip=False)
    .counts(sizes)
    .flip
    .of(windows, sides)
    .overlap
    .scale
    .scaled(sizes)
    .starts(sizes, numbers)
    .undo(pixels)
    .windows(sizes, starts)
SlotDataLoader(dataset, batch_size=1, **options)
Stripe(picture, size, start, pixels)
    .area
    .picture
    .pixels
    .size
    .start
Tile(picture, origin, size)
    .key
    .of(key)
VersionError(ReadError)
Watch(batches, report, writer, every, quiet)
    .record()
    .verdict()
Window(block=64, blocks=32, apart=False)
    .apart
    .block
    .blocks
    .size
__version__
collate_lists(batch)
mix_packs(packs, *, classes=None, mapping=None, end=0)
open_dataset(root, split=None, label=None, transform=None, verify=None, staged=True, fields=None, labelled=None,
        form=None, cache=None, cache_bytes=None, generation=None, fold=None, offline=None, pack=None, **build)
stitch(parts, fill=None, weight='clip')
stitch_all(parts, fill=None, weight='clip')
stitch_stripes(parts, fill=None, weight='clip')
to_device(batches, device='cuda', *, dtype=None, normalize=None, channels_last=False, classes=None,
        label_dtype=None, augment=None, ahead=1, fields=('image', 'label'), nodata=None, times=1)
watch(batches, *, report=None, writer=None, every=50, quiet=False)
write_prediction(path, pixels, place=None, *, classes=None, nodata=None)
"""


def surface() -> str:
    lines = [line for name in readers.__all__ for line in lines_of(name, getattr(readers, name))]
    return "\n".join(textwrap.fill(line, 112, subsequent_indent="        ") for line in lines)


def lines_of(name: str, value: object) -> list[str]:
    """Return the signature of a public name and, for a class, its public methods and properties; errors with bases."""
    if not callable(value):
        return [name]
    if not inspect.isclass(value):
        return [f"{name}{parameters(value)}"]
    if issubclass(value, Exception):
        return [f"{name}({', '.join(base.__name__ for base in value.__bases__)})"]
    members = []
    bases = [base for base in value.__mro__[1:] if base.__module__.startswith("readers.") and not is_public(base)]
    for member in sorted({member for owner in (value, *bases) for member in vars(owner)}):
        found = inspect.getattr_static(value, member)
        if member.startswith("_") or isinstance(found, str):
            continue
        if isinstance(found, (classmethod, staticmethod)) or inspect.isfunction(found):
            members.append(f"    .{member}{parameters(getattr(value, member))}")
        else:
            members.append(f"    .{member}")
    return [f"{name}{parameters(value)}", *members]


def is_public(base: type) -> bool:
    return base.__name__ in readers.__all__


def parameters(function: object) -> str:
    """Return the parameters with their defaults, without types."""
    signature = inspect.signature(function)  # type: ignore[arg-type]
    bare = [item.replace(annotation=item.empty) for item in signature.parameters.values() if item.name != "self"]
    return str(signature.replace(parameters=bare, return_annotation=signature.empty))


def test_the_public_names_and_parameters_are_these() -> None:
    assert surface() == SURFACE.strip("\n")


def test_the_names_are_sorted() -> None:
    assert sorted(readers.__all__) == readers.__all__
    assert dir(readers) == readers.__all__


def test_another_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'readers' has no attribute 'ZipSegDataset'"):
        readers.ZipSegDataset  # noqa: B018


LIGHT = (
    "DamagedError",
    "ManifestError",
    "NoPackError",
    "Order",
    "ReadError",
    "RequestError",
    "Stripe",
    "Tile",
    "VersionError",
    "Window",
    "stitch",
    "stitch_all",
    "stitch_stripes",
)


def test_pytorch_is_imported_with_the_first_name_that_needs_it() -> None:
    code = f"import sys, readers\nfor name in {LIGHT}: getattr(readers, name)\nprint('torch' in sys.modules)"
    code += "\nreaders.SegDataset\nprint('torch' in sys.modules)"
    done = python("-c", code)
    assert done.stdout.split() == ["False", "True"]
