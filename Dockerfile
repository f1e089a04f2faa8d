# docker build -t hubferry:0.1.0 .
#
# Debian 12 for both stages: the binary links that release's OpenSSL, zlib, yaml-cpp, prometheus-cpp and MariaDB client,
# and gets their security fixes by a rebuild on a fresh base. The image contains the binary and these libraries, no compiler.
FROM debian:12-slim AS build
RUN apt-get update \
 && apt-get install -y --no-install-recommends clang-19 lld-19 meson ninja-build pkg-config python3 git \
      libboost1.81-dev libssl-dev zlib1g-dev prometheus-cpp-dev libyaml-cpp-dev libcli11-dev libmariadb-dev
WORKDIR /hubferry
COPY . .
RUN CC=clang-19 CXX=clang++-19 CC_LD=lld-19 CXX_LD=lld-19 \
      meson setup /build --wrap-mode=nofallback --prefix=/usr -Dtests=false -Dperf=false \
 && ninja -C /build hubferry \
 && DESTDIR=/image meson install -C /build --no-rebuild --strip

FROM debian:12-slim
RUN apt-get update \
 && apt-get install -y --no-install-recommends ca-certificates libssl3 zlib1g libyaml-cpp0.7 libprometheus-cpp-core1.0 \
      libmariadb3 \
 && rm -rf /var/lib/apt/lists/*
COPY --from=build /image/usr/bin/hubferry /usr/bin/hubferry
# As a plugin of kubectl: for images that copy it from here, and where kubectl is in the image.
RUN ln -s hubferry /usr/bin/kubectl-hubferry
USER 65532:65532
ENTRYPOINT ["/usr/bin/hubferry"]
CMD ["manager", "--leader-elect"]
