#!/bin/sh
# Waits until Temporal responds, then creates the namespace of Rota.
set -eu
until temporal operator cluster health >/dev/null 2>&1; do sleep 1; done
temporal operator namespace describe --namespace default >/dev/null 2>&1 ||
    temporal operator namespace create --namespace default --retention 72h
until temporal operator namespace describe --namespace default >/dev/null 2>&1; do sleep 1; done
