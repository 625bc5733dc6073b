# The app for production. Versions are pinned; pin digests as well if your registry supports them.
FROM python:3.13.16-slim-bookworm AS packages
WORKDIR /app
COPY requirements-serve.lock .
RUN python -m venv /venv \
 && /venv/bin/pip install --no-cache-dir --disable-pip-version-check --require-hashes -r requirements-serve.lock
COPY packages packages
RUN /venv/bin/pip install --no-cache-dir --no-deps --no-build-isolation packages/strawberry-compiled

FROM python:3.13.16-slim-bookworm
# For sign-in sheets: other scripts, such as Chinese and Thai, and emoji.
RUN apt-get update \
 && apt-get install --yes --no-install-recommends \
    fonts-noto-cjk fonts-noto-color-emoji fonts-noto-core \
 && rm -rf /var/lib/apt/lists/*
RUN useradd --system --uid 10001 --no-create-home slotlock
COPY --from=packages /venv /venv
WORKDIR /app
COPY slotlock slotlock
# Otherwise each start would compile the package.
RUN python -m compileall -q slotlock
ENV PATH=/venv/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 SLOTLOCK_HOST=0.0.0.0
USER slotlock
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=3s --start-period=120s \
  CMD ["python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:8000/healthz', timeout=2)"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["python", "-m", "slotlock"]
CMD ["serve", "--workers", "2"]
