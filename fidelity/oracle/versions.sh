#!/bin/sh
# Writes the module file for one Kubernetes version: `./versions.sh 1.37.3 go.mod`
# for the newest, `./versions.sh 1.34.13 versions/1.34/go.mod` for another.
#
# k8s.io/kubernetes replaces its staging modules with folders of its tree,
# and replacements do not apply to modules that depend on it. So each of them is
# replaced here with the published module of the same version. etcd's server has
# the version that Kubernetes requires.
set -eu
cd "$(dirname "$0")"
version=$1
file=$2

mkdir -p "$(dirname "$file")"
theirs=$(go mod download -json "k8s.io/kubernetes@v$version" | sed -n 's/.*"GoMod": "\(.*\)".*/\1/p')
{
	echo "module github.com/fake-apiserver/fake-apiserver/oracle"
	echo
	sed -n '/^go /p' "$theirs"
	echo
	# The released binary has these godebug settings, too.
	sed -n '/^godebug /p' "$theirs"
	echo
	echo "require ("
	echo "	k8s.io/kubernetes v$version"
	sed -n 's#^\t\(go.etcd.io/etcd/\(client\|server\)/v3 v[^ ]*\).*#\t\1#p' "$theirs"
	echo ")"
	echo
	echo "replace ("
	sed -n "s#^\t\(k8s.io/[a-z-]*\) => ./staging.*#\t\1 => \1 v0${version#1}#p" "$theirs"
	echo ")"
} >"$file"
go mod tidy -modfile="$file"
