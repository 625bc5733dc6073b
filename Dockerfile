# The app for production. Versions are pinned; pin digests as well if your registry supports them.
FROM python:3.13.16-slim-bookworm AS packages
WORKDIR /app
COPY requirements-serve.lock .
RUN python -m venv /venv \
 && /venv/bin/pip install --no-cache-dir --disable-pip-version-check --require-hashes -r requirements-serve.lock
COPY packages packages
RUN /venv/bin/pip install --no-cache-dir --no-deps --no-build-isolation packages/strawberry-compiled

FROM python:3.13.16-slim-bookworm
# For sign-in sheets: scripts that the lock file's packages of fonts lack, such as Tibetan.
RUN apt-get update \
 && apt-get install --yes --no-install-recommends fonts-noto-core \
 && rm -rf /var/lib/apt/lists/*
# The volume of compose.yaml for backups begins with the owner of its folder.
RUN useradd --system --uid 10001 --no-create-home slotlock \
 && install --directory --owner slotlock --mode 0700 /backups \
 && printf '#!/bin/sh\nexec python -m slotlock "$@"\n' > /usr/local/bin/slotlock \
 && chmod 0755 /usr/local/bin/slotlock
COPY --from=packages /venv /venv
WORKDIR /app
COPY slotlock slotlock
# Otherwise each start would compile the package.
RUN python -m compileall -q slotlock
ENV PATH=/venv/bin:$PATH PYTHONPATH=/app PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 SLOTLOCK_HOST=0.0.0.0
USER slotlock
EXPOSE 8000
STOPSIGNAL SIGTERM
ENTRYPOINT ["python", "-m", "slotlock"]
CMD ["serve", "--workers", "2"]
