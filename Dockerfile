# The broker alone, without Spark, compilers or pip: about 25 MB on top of its base.
#
#   docker build -t odradek .
#   docker run -p 9092:9092 -v odradek:/data odradek
#
# Clients connect to the address that the broker advertises, so from another container or machine:
#   docker run … odradek --listen 0.0.0.0:9092 --advertise broker.example:9092
#
# All cores of the machine (a broker uses one): a process for each, whose ports are all published and advertised. --init
# keeps a killed supervisor from taking its brokers with it before their logs are flushed:
#   docker run --init --entrypoint odradek -v odradek:/data -p 9092-9095:9092-9095 … cluster run --processes --brokers 4 \
#       --listen 0.0.0.0:9092 --advertise localhost:9092
#
# A cluster for tests, of three brokers, which forgets everything when it ends. The variable holds what is to be said
# behind `odradek testing serve`, and may be as short as --brokers=1 (examples/compose.testing.yaml):
#   docker run -e ODRADEK_TESTING="--topics orders:6" -p 9092-9094:9092-9094 odradek

FROM python:3.12-slim AS build
WORKDIR /source
RUN python -m venv --without-pip /opt/odradek
COPY requirements/runtime.txt requirements/
RUN python -m pip --python /opt/odradek/bin/python install --no-cache-dir --require-hashes -r requirements/runtime.txt
COPY pyproject.toml README.md LICENSE ./
COPY odradek odradek
COPY broker broker
COPY client client
COPY protocol protocol
COPY spark_jobs spark_jobs
RUN python -m pip --python /opt/odradek/bin/python install --no-cache-dir --no-deps .

FROM python:3.12-slim
RUN useradd --system --uid 900 --no-create-home --home-dir /data --shell /usr/sbin/nologin odradek \
    && install --directory --owner odradek --group odradek --mode 0750 /data
COPY --from=build /opt/odradek /opt/odradek
ENV PATH=/opt/odradek/bin:$PATH PYTHONUNBUFFERED=1 ODRADEK_HEALTH=127.0.0.1:9092
USER odradek
# The data directory defaults to ./odradek-data, which lies in the volume whatever the arguments are.
WORKDIR /data
VOLUME /data
EXPOSE 9092
# Healthy is who answers an ApiVersions request (key 18, version 0, correlation id 1, no client id) with error code 0.
HEALTHCHECK --interval=10s --timeout=3s --start-period=5s --retries=3 CMD ["python", "-c", "import os, socket, sys\nhost, _, port = os.environ['ODRADEK_HEALTH'].rpartition(':')\npeer = socket.create_connection((host, int(port)), 2)\npeer.sendall(bytes.fromhex('0000000a 0012 0000 00000001 ffff'))\nsys.exit(peer.makefile('rb').read(10)[4:] != bytes.fromhex('00000001 0000'))"]
ENTRYPOINT ["sh", "-fc", "if [ -n \"$ODRADEK_TESTING\" ]; then exec odradek testing serve --host 0.0.0.0 --port 9092 --advertise localhost $ODRADEK_TESTING; fi; exec odradek serve \"$@\"", "odradek"]
CMD ["--listen", "0.0.0.0:9092", "--advertise", "localhost:9092"]
