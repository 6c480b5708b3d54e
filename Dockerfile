# The container image of the makegood command: the command, and nothing else. It needs no libraries (CGO_ENABLED=0), brings
# its own roots for https, and keeps everything in /data.
#
#     make release TARGETS=linux/amd64
#     docker build -t makegood -f Dockerfile dist/image/amd64
#     docker run -p 127.0.0.1:4777:4777 -v makegood:/data makegood
#
# In production it serves with a login (examples/production/compose.yaml):
#
#     docker run ... makegood serve --data /data --addr 0.0.0.0:4777 --tokens /run/secrets/tokens
#
# A command of your own goes the same way: a folder with the command, named makegood, and an empty folder data; with it, the notices of what you link.
FROM scratch
COPY --chown=65532:65532 data /data
COPY makegood LICENSE* NOTICES* /
USER 65532:65532
VOLUME /data
EXPOSE 4777
ENTRYPOINT ["/makegood"]
CMD ["dev", "--data", "/data", "--addr", "0.0.0.0:4777"]
