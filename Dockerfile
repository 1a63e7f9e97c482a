# docker build -t segpack .                         packs, as the user who owns the folder:
#   docker run --rm --user "$(id -u)" -v "$PWD:/data" segpack build raw out
# docker build -t segpack:train --target train .    also reads packs, with PyTorch for the CPU
FROM python:3.13-slim AS build
RUN apt-get update && apt-get install --yes --no-install-recommends gcc libc6-dev
COPY . /source
RUN pip wheel --no-deps --wheel-dir /wheels /source

# Without compiler or headers the package installs all the same, only slower: the last line finds that.
FROM python:3.13-slim AS pack
RUN --mount=type=bind,from=build,source=/wheels,target=/wheels \
    pip install --no-cache-dir "$(echo /wheels/*.whl)[store]" \
    && pip uninstall --yes opencv-python && pip install --no-cache-dir --no-deps opencv-python-headless \
    && python -c 'import packer.pixels.area_kernel, readers.window_kernel'
USER 1000
WORKDIR /data
ENTRYPOINT ["packer"]

FROM pack AS train
USER root
RUN pip install --no-cache-dir torch --index-url https://download.pytorch.org/whl/cpu
USER 1000
ENTRYPOINT ["python"]

# The last stage is what `docker build` makes.
FROM pack
