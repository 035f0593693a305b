FROM python:3.12-slim AS build
WORKDIR /src
COPY . .
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels . \
 && python -m venv /opt/router_ext \
 && /opt/router_ext/bin/pip install --no-cache-dir --constraint constraints.txt /wheels/*.whl

FROM python:3.12-slim
COPY --from=build /opt/router_ext /opt/router_ext
RUN useradd --uid 10001 --no-create-home router_ext \
 && install -d -o 10001 -g 10001 -m 0750 /run/router_ext
ENV PATH=/opt/router_ext/bin:$PATH PYTHONUNBUFFERED=1
USER 10001
ENTRYPOINT ["router-ext"]
CMD ["serve"]
