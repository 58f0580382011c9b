#!/bin/sh
# Runs after the files are in place. dpkg says "configure" and which version was configured before, if one was, or
# "abort-..." after another step has failed; rpm says how many versions are installed, with this one.
set -e

case "$1" in
configure) upgrade=$2 ;;
abort-* | 1) upgrade= ;;
*) upgrade=yes ;;
esac

if command -v systemd-sysusers >/dev/null; then
  systemd-sysusers turnstile.conf
fi
[ -d /run/systemd/system ] || exit 0 # systemd is not what runs this system: it may be a container

systemctl daemon-reload || true
if [ -n "$upgrade" ]; then # restart what runs, and nothing else
  invoke=systemctl
  if command -v deb-systemd-invoke >/dev/null; then # Debian's, which asks the administrator's policy
    invoke=deb-systemd-invoke
  fi
  $invoke try-restart turnstile.service turnstile-dashboard.service 'turnstile-elect@*.service' || true
fi
