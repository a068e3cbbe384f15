#!/bin/sh
# Makes hello-java.jar with nothing but a JDK.
set -e
cd "$(dirname "$0")"
classes=$(mktemp -d)
trap 'rm -rf "$classes"' EXIT
javac --release 17 -d "$classes" src/Main.java
jar --create --file hello-java.jar --main-class Main -C "$classes" .
