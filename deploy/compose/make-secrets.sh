#!/bin/sh
# Makes the keys and passwords of a node in the directory that it is given, those that are not there yet.
#
# Keys are for the sidecar alone. Passwords of services that run as other users are for its group too.
set -eu
umask 077
cd "$1"

# keep FILE MODE: what comes in becomes the file, unless there is one.
keep() {
  if [ ! -s "$1" ]; then
    cat >"$1.new"
    chmod "$2" "$1.new"
    mv "$1.new" "$1"
  fi
}

password() {
  head -c 32 /dev/urandom | od -An -v -tx1 | tr -d ' \n'
}

head -c 64 /dev/urandom | base64 -w 0 | keep sealing.key 0400
head -c 32 /dev/urandom | base64 -w 0 | keep master.key 0400
password | keep postgres-admin.password 0440
password | keep postgres.password 0440
password | keep grafana.password 0440
printf 'postgresql://sidecar:%s@postgres/sidecar\n' "$(cat postgres.password)" | keep store.url 0400
