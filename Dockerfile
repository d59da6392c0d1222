# One image for every process of ours; docker-compose.yml says which one a container is.
FROM python:3.11.15-slim-bookworm AS packages
COPY requirements.lock .
RUN python -m venv /venv \
    && /venv/bin/pip install --no-cache-dir --disable-pip-version-check --require-hashes -r requirements.lock

FROM python:3.11.15-slim-bookworm
RUN useradd --uid 10001 --no-create-home --shell /usr/sbin/nologin orders \
    && install -d -o orders -g orders /data
COPY --from=packages /venv /venv
ENV PATH=/venv/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
WORKDIR /app
COPY domain domain
COPY workflows workflows
COPY adapters adapters
COPY activities activities
COPY events events
COPY migrations migrations
COPY runtime runtime
COPY api api
COPY terminal terminal
COPY simulators simulators
COPY worker.py starter.py ops.py ./
USER 10001:10001
CMD ["python", "worker.py", "--wait"]
