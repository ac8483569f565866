# docker build --tag rekindle .
# docker run --rm --network none --user "$(id -u):$(id -g)" --volume "$PWD:/data" rekindle audit dataset --out audit
#
# The command needs no network. What it writes belongs to the user who runs it, and only that user can read it.
FROM python:3.12-slim

COPY pyproject.toml README.md LICENSE /build/
COPY src /build/src

# The compiled kernels are kept where any user may add those of another processor.
ENV NUMBA_CACHE_DIR=/var/cache/rekindle \
    MPLCONFIGDIR=/tmp/matplotlib
RUN pip install --no-cache-dir "/build[dp,membership]" \
    && rm -r /build \
    && mkdir --mode 777 "$NUMBA_CACHE_DIR" \
    && python -m rekindle.attacks.compile \
    && chmod -R a+rwX "$NUMBA_CACHE_DIR"

USER 1000:1000
WORKDIR /data
ENTRYPOINT ["rekindle"]
CMD ["--help"]
