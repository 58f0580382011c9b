#!/bin/sh
# Runs after the files are removed. dpkg says "remove", later perhaps "purge", or "upgrade" and others; rpm says how many
# versions remain, and in an upgrade runs this script of the old version after the new one's postinstall.sh.
set -e

case "$1" in
remove | 0)
  if [ -d /run/systemd/system ]; then
    systemctl daemon-reload || true
  fi
  ;;
esac
case "$1" in
purge | 0)
  if [ -e /var/lib/turnstile ]; then
    echo 'turnstile: the data of the server stays in /var/lib/turnstile. Delete it if it is not needed.'
  fi
  ;;
esac
