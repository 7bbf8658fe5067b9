#!/bin/sh
# Builds bin/oracle-<minor> from a module file: `./build.sh` for the newest
# version (go.mod), `./build.sh 1.34` for versions/1.34/go.mod.
#
# Without the -X flags /version returns v0.0.0-master. They set the values of the
# released binary, except for the commit and the date, which are unknown.
set -eu
cd "$(dirname "$0")"
file=go.mod
[ $# -eq 0 ] || file=versions/$1/go.mod
version=$(sed -n 's#^\tk8s.io/kubernetes v##p' "$file")
major=${version%%.*}
minor=$(echo "$version" | cut -d. -f2)
x=k8s.io/component-base/version
go build -modfile="$file" -o "bin/oracle-$major.$minor" -ldflags "-s -w \
	-X $x.gitVersion=v$version -X $x.gitMajor=$major -X $x.gitMinor=$minor \
	-X $x.gitTreeState=clean" .
echo "bin/oracle-$major.$minor"
