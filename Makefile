# make demo      pack the sample scenes in all four formats, verify, read, and compare with reading the raw files
# make test      lint, types, and the short cases of all tests; a few minutes
# make test-all  also the long tests, 80 examples for each property test, the recipes, and the tests of pixels once more
#                without the compiled kernels; this is what CI runs
# make recipes   the recipes of docs/recipes, and all trainers that readers/bridges opens packs for, with their packages (4 GB)
# make docs      the site of README.md and docs/ in site/; view it with: python3 -m http.server -d site
# make samples, make pictures   draw data_samples/raw, and the pictures of README.md and the guide, again; those of pages need
#                Chromium
# Each needs only Python >= 3.10 and make; the rest goes into $(VENV).

PYTHON ?= python3
VENV ?= .venv

# Each new process would compile the package again, and pytest each of its files.
unexport PYTHONDONTWRITEBYTECODE

# Tests of pixels: each takes NumPy and OpenCV where a kernel is missing. No other test sees which of them made a pixel.
PIXELS = annotations_coco_shapes build build_golden contract_other_fields contract_statistics decoding decoding_bands \
	decoding_fast_decode decoding_hard_files decoding_kinds decoding_lzw decoding_orientation decoding_png_length \
	decoding_unfilter_kernel docs_public_sets fields_all_kinds fields_kinds fields_kinds_read fields_selected \
	formats_columns formats_foreign kernels packs_index pixels_area_kernel pixels_geometry pixels_ids pixels_label_kernels \
	pixels_labels pixels_multilabel pixels_stored pixels_values readers_collate readers_crop readers_device \
	readers_encodings readers_holding readers_laws readers_loader readers_mix readers_native readers_scaled readers_slot_loader \
	readers_tiles sources_pack_fields

.PHONY: demo test test-all recipes docs docs-version samples picture pictures clean

demo: $(VENV)/demo.installed
	$(VENV)/bin/pip install --quiet --disable-pip-version-check --no-deps .
	$(VENV)/bin/python tools/run demo

test: $(VENV)/test.installed
	$(VENV)/bin/pip install --quiet --disable-pip-version-check --no-deps --editable .
	PATH="$(CURDIR)/$(VENV)/bin:$$PATH" tools/check

test-all: $(VENV)/recipes.installed
	$(VENV)/bin/pip install --quiet --disable-pip-version-check --no-deps --editable .
	SEGPACK_REQUIRE_RECIPES=1 PATH="$(CURDIR)/$(VENV)/bin:$$PATH" tools/check --long
	SEGPACK_KERNELS=plain PATH="$(CURDIR)/$(VENV)/bin:$$PATH" pytest --all-cases tests/test_*kernel*.py
	SEGPACK_KERNELS=0 PATH="$(CURDIR)/$(VENV)/bin:$$PATH" pytest --all-cases --numprocesses 2 --dist worksteal \
		$(PIXELS:%=tests/test_%.py)

recipes: $(VENV)/trainers.installed
	$(VENV)/bin/pip install --quiet --disable-pip-version-check --no-deps --editable .
	SEGPACK_REQUIRE_RECIPES=1 SEGPACK_REQUIRE_TRAINERS=1 $(VENV)/bin/python -m pytest --long --numprocesses 2 \
		tests/test_docs_recipe*.py tests/test_bridges*.py tests/test_docs_trainers.py tests/test_readers_receipts.py \
		tests/test_report_mistakes.py

docs: $(VENV)/docs.installed
	$(VENV)/bin/pip install --quiet --disable-pip-version-check --no-deps --editable .
	$(VENV)/bin/python tools/run checks.cli_page
	NO_MKDOCS_2_WARNING=1 $(VENV)/bin/mkdocs build --quiet --strict

# A version of the site in the branch gh-pages; a release is also "latest".
docs-version: docs
	git config user.name >/dev/null || git config user.name "segpack contributors"
	git config user.email >/dev/null || git config user.email "segpack@localhost"
	PATH="$(CURDIR)/$(VENV)/bin:$$PATH" NO_MKDOCS_2_WARNING=1 mike deploy $(PUSH) --update-aliases $(VERSION) $(if $(filter main,$(VERSION)),,latest)
	$(if $(filter main,$(VERSION)),,$(VENV)/bin/mike set-default $(PUSH) latest)

pictures: picture $(VENV)/test.installed
	$(VENV)/bin/pip install --quiet --disable-pip-version-check --no-deps --editable .
	$(VENV)/bin/python tools/run pictures

samples picture: $(VENV)/demo.installed
	$(VENV)/bin/python tools/run $@

$(VENV)/demo.installed: setup.cfg constraints.txt tools/make_venv
	tools/make_venv $(PYTHON) $(VENV) ".[torch]"
	touch $@

$(VENV)/test.installed: setup.cfg constraints.txt tools/make_venv
	tools/make_venv $(PYTHON) $(VENV) ".[dev]"
	touch $@

# Installed after the test environment: pip keeps the versions that are installed.
$(VENV)/recipes.installed: $(VENV)/test.installed docs/recipes/constraints.txt
	tools/make_venv $(PYTHON) $(VENV) ".[dev,recipes,recipes-torchvision]" docs/recipes/constraints.txt
	touch $@

$(VENV)/trainers.installed: $(VENV)/recipes.installed
	tools/make_venv $(PYTHON) $(VENV) ".[dev,recipes,recipes-torchvision,trainers]" docs/recipes/constraints.txt
	touch $@

$(VENV)/docs.installed: $(VENV)/demo.installed docs/constraints.txt
	tools/make_venv $(PYTHON) $(VENV) ".[docs]" docs/constraints.txt
	touch $@

clean:
	rm -rf $(VENV) build demo site *.egg-info
