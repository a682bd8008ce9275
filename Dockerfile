# The decision service: docker build -t banditree . && docker run -v ./shop:/data banditree /data/items.csv --arm item ...
FROM python:3.12-slim AS build
# hadolint ignore=DL3008
RUN apt-get update \
 && apt-get install -y --no-install-recommends g++ \
 && rm -rf /var/lib/apt/lists/*
WORKDIR /source
COPY . .
ENV BANDITREE_REQUIRE_NATIVE=1
RUN python -m venv /opt/banditree \
 && /opt/banditree/bin/pip install --no-cache-dir --constraint constraints.txt ".[cli,serve,postgres,frames,parquet]"

FROM python:3.12-slim
RUN useradd --create-home --uid 10001 banditree && install -d -o banditree /data
COPY --from=build /opt/banditree /opt/banditree
USER 10001
WORKDIR /data
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=3s \
  CMD ["/opt/banditree/bin/python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/healthz', timeout=2)"]
# The token comes from the environment variable BANDITREE_TOKEN.
ENTRYPOINT ["/opt/banditree/bin/banditree", "serve", "--host", "0.0.0.0"]
